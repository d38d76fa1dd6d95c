"""`[sign_in.NAME]` and `[sessions]`: mistakes are reported with their place and a remedy, and a secret is one."""

from pathlib import Path

import pytest

from penstock.settings.problems import SettingsError
from penstock.settings.tables import Settings, load


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    config = folder / "penstock.toml"
    config.write_text(text)
    return load(config, environ or {}, {"data": folder})


PROVIDER = '[sign_in.acme]\nissuer = "https://id.example.com"\nclient_id = "penstock"\n'
RULE = "[[sign_in.acme.rules]]\n"
MISTAKES = {
    '[sign_in.acme]\nissuer = "http://id.example.com"\nclient_id = "x"\n': "is not https",
    '[sign_in.acme]\nissuer = "https://user:pw@id.example.com"\nclient_id = "x"\n': "user name",
    '[sign_in.acme]\nissuer = "https://id.example.com?x=1"\nclient_id = "x"\n': "has a query",
    '[sign_in.acme]\nissuer = "id.example.com"\nclient_id = "x"\n': "is not a URL",
    '[sign_in.acme]\nclient_id = "x"\n': "is missing",
    '[sign_in.local]\nissuer = "https://id.example.com"\nclient_id = "x"\n': "is not a provider's name",
    '[sign_in."A/b"]\nissuer = "https://id.example.com"\nclient_id = "x"\n': "is not a provider's name",
    f'{PROVIDER}scope = ["openid"]\n': "Did you mean `scopes`?",
    f'{PROVIDER}scopes = ["a b"]\n': "is not a scope",
    f'{PROVIDER}trust_email = "never"\n': "'verified' or 'always'",
    f'{PROVIDER}client_secret = "env:NOT_SET"\n': "NOT_SET is not set",
    f'{PROVIDER}{RULE}role = "member"\naccount = "mill"\n': "needs one condition",
    f'{PROVIDER}{RULE}group = "a"\nclaim = "b"\nvalue = "c"\nrole = "member"\naccount = "mill"\n': "one condition",
    f'{PROVIDER}{RULE}claim = "b"\nrole = "member"\naccount = "mill"\n': "one condition",
    f'{PROVIDER}{RULE}group = "a"\nrole = "member"\n': "does not go together with `account`",
    f'{PROVIDER}{RULE}group = "a"\nrole = "operator"\naccount = "mill"\n': "does not go together with `account`",
    f'{PROVIDER}{RULE}group = "a"\nrole = "king"\naccount = "mill"\n': "'viewer'",
    f'{PROVIDER}{RULE}email_domain = "exa mple"\nrole = "member"\naccount = "mill"\n': "not written as allowed",
    "[sessions]\nidle = 5\n": "greater than or equal to 60",
    '[sessions]\nmax_age = "31d"\n': "less than or equal to",
    '[sessions]\nconsole_keys = "off"\n': "'accepted' or 'hidden'",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, mistake)
    problems = [str(problem) for problem in caught.value.problems]
    assert any(MISTAKES[mistake] in problem for problem in problems), problems
    assert all("[sign_in" in problem or "[sessions]" in problem for problem in problems), problems


def test_a_secret_may_stand_elsewhere_and_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a-client's-long-secret\n")
    for given in ("env:SECRET", "file:secret.txt", "a-client's-long-secret"):
        settings = read(tmp_path, f'{PROVIDER}client_secret = "{given}"\n', {"SECRET": "a-client's-long-secret"})
        secret = settings.sign_in["acme"].client_secret
        assert secret is not None
        assert secret.get_secret_value() == "a-client's-long-secret"
        assert "a-client's-long-secret" in settings.secrets
        assert "a-client" not in repr(settings)


def test_scopes_rules_and_domains_are_read(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        f'{PROVIDER}scopes = "email,groups"\n{RULE}email_domain = "@Example.ORG"\nrole = "viewer"\naccount = "mill"\n'
        "[sign_in.here]\nissuer = 'http://127.0.0.1:9000/x'\nclient_id = 'y'\n[sessions]\nmax_age = '2d'\n",
    )
    assert settings.sign_in["acme"].scopes == ("openid", "email", "groups")
    assert settings.sign_in["acme"].rules[0].rule("groups").email_domain == "example.org"
    assert settings.session_policy.max_seconds == 2 * 86_400
    assert settings.session_policy.providers == {"acme", "here"}
