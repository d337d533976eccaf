-- Claims of turns and runs of agents are one queue of a conversation, numbered by one counter (conversations/functions/turn_queue.sql).
update conversation set last_run = last_turn where last_turn > last_run;
alter table conversation drop column last_turn;
