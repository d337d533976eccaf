"""Access rules: who may call which tool, with which arguments and when, as text that people read and write.

`parse_rules` reads the text (the grammar is in grammar.py), `RuleSet` decides about calls in memory, `AccessRules`
stores the text of a tenant, and `RuleTrials` counts what rules on trial would have refused.
"""
