"""Kafka behind the log: PostgreSQL stores the records, Kafka delivers them to consumers on many machines.

Records are published to PostgreSQL as always. A `Relay` sends them to Kafka in order, each with its offset in a header.
A consumer reads from Kafka (`KafkaFeed`, through a `Bridge` to the client's thread), drops records that are not newer
than those it has, and reads missing ones from PostgreSQL. An unavailable broker delays records, but loses none.
"""
