"""Kafka behind the log: PostgreSQL keeps what happened, Kafka carries it to consumers on many machines.

Records are published to PostgreSQL as always. One `Relay` at a time sends them on, in order, each with its offset in a
header; a consumer reads from Kafka (`KafkaFeed`, by a `Bridge` to the client's thread), drops what is not newer than
what it has, and reads what is missing from PostgreSQL. Nothing depends on a broker: one that is away delays records.
"""
