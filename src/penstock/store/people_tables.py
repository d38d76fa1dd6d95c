"""The tables of people: roles in accounts, limits for keys, identities at sign-in providers, sessions."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, Table, Text

from penstock.store.tables import Word, metadata

people = Table(
    "people",
    metadata,
    Column("id", Word, primary_key=True),
    Column("email", Word, nullable=False, unique=True),  # in lower case
    Column("name", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deactivated_at", Float),
    Column("is_operator", Integer, nullable=False),
    Column("signed_in_at", Float),
)

memberships = Table(
    "memberships",
    metadata,
    Column("person_id", Word, primary_key=True),
    Column("account_id", Word, primary_key=True),
    Column("role", Word, nullable=False),
    Column("source", Word, nullable=False),  # "local", or the sign-in provider whose rule gave it
    Column("key_id", Word, nullable=False),  # the key of the person's requests from the console
    Column("created_at", Float, nullable=False),
    Index("memberships_by_account", "account_id", "person_id"),
)

key_policies = Table(  # limits that accounts set for keys of their people
    "key_policies",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("max_keys", Integer, nullable=False),
    Column("max_budget", BigInteger),  # billionths of a dollar a month
)

identities = Table(  # persons as sign-in providers know them
    "identities",
    metadata,
    Column("id", Word, primary_key=True),  # a hash of issuer and subject, which may be long
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("person_id", Word, nullable=False),
    Column("provider", Word, nullable=False),
    Column("is_operator", Integer, nullable=False),  # 1: a rule of the provider made the person an operator
    Column("created_at", Float, nullable=False),
    Column("signed_in_at", Float, nullable=False),
    Index("identities_by_person", "person_id"),
)

sessions = Table(  # of persons who are signed in to the console
    "sessions",
    metadata,
    Column("id", Word, primary_key=True),
    Column("token_hash", LargeBinary, nullable=False, unique=True),  # of the cookie's value
    Column("person_id", Word, nullable=False),
    Column("identity_id", Word, nullable=False),
    Column("provider", Word, nullable=False),
    Column("provider_session", Text),  # the provider's `sid`, for its logout
    Column("id_token", LargeBinary),  # sealed; shown to the provider at sign-out
    Column("created_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("browser", Text, nullable=False),
    Column("address", Text, nullable=False),
    Index("sessions_by_person", "person_id"),
    Index("sessions_by_identity", "identity_id"),
    Index("sessions_by_end", "expires_at"),
)

sign_in_attempts = Table(  # sign-ins that have begun; a row is removed when it is used
    "sign_in_attempts",
    metadata,
    Column("state_hash", LargeBinary, primary_key=True),
    Column("browser_hash", LargeBinary, nullable=False),
    Column("provider", Word, nullable=False),
    Column("return_to", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("expires_at", Float, nullable=False),
    Index("sign_in_attempts_by_end", "expires_at"),
)

logout_tokens = Table(  # tokens of back-channel logouts that were used
    "logout_tokens",
    metadata,
    Column("id", LargeBinary, primary_key=True),  # a hash of issuer and `jti`
    Column("expires_at", Float, nullable=False),
    Index("logout_tokens_by_end", "expires_at"),
)
