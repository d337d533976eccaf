"""Users' consent: back ends that are called with a token which each user has agreed to (OAuth, authorization code).

`UserConnections` begins, completes, lists and removes the connections of users. `UserTokens` returns their tokens.
"""
