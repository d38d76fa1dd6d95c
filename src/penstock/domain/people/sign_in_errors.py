"""Errors of sign-in and of sessions, which belong to the tree of `penstock.errors`."""

from penstock.errors import InvalidRequest, MissingApiKey, NotFound, PenstockError


class SignInFailed(InvalidRequest):
    """The sign-in failed."""

    code = "sign_in_failed"
    suggestion = "Begin the sign-in again."


class InvalidLogoutToken(InvalidRequest):
    """The logout token is not valid, or it was used before."""

    code = "invalid_logout_token"


class SessionEnded(MissingApiKey):
    """You are not signed in, or your session has ended."""

    code = "session_ended"
    suggestion = "Sign in again, or send an API key."


class SignInRefused(PenstockError):
    """You may not sign in here."""

    status = 403
    type = "permission_error"
    suggestion = "Ask an operator of this server for access."


class CsrfHeaderMissing(PenstockError):
    """Changes with a session's cookie need the header `x-penstock-csrf: 1`."""

    status = 403
    type = "permission_error"
    suggestion = "Send the header, or an API key in `Authorization`."


class ProviderNotFound(NotFound):
    """There is no such sign-in provider."""

    suggestion = "GET /api/v1/sign-in lists them."


class SessionNotFound(NotFound):
    """There is no such session."""


class ProviderUnavailable(PenstockError):
    """The sign-in provider does not answer as it should."""

    status = 503
    retryable = True
    suggestion = "Try again in a minute. If it lasts, ask an operator: the server's log has the cause."
