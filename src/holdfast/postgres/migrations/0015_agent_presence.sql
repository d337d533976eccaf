-- Which agents a process serves; null for one that serves none, such as a worker.
alter table worker_presence add column agents text[];
