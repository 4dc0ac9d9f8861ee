"""Configuration: three sources, one frozen object, and a clear refusal of everything else."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tidings.config import Secret, Settings, load, mask_url
from tidings.model.errors import Misconfigured

CANARY = "canary-5f2b9c1e7a44"

Loader = Callable[..., Settings]


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """Load with a file of this text, a private mode, and only the given environment."""

    def load_(
        text: str | None = None, environ: Mapping[str, str] | None = None, *, mode: int = 0o600, **flags: object
    ) -> Settings:
        if text is not None:
            (tmp_path / "tidings.toml").write_text(text, encoding="utf-8")
            (tmp_path / "tidings.toml").chmod(mode)
        return load(flags=flags, environ=environ or {}, folder=tmp_path)

    return load_


def test_without_any_configuration_the_engine_runs_on_one_file(loaded: Loader) -> None:
    """Sensible defaults: SQLite, loopback, the pretend phone and the console."""
    settings = loaded()
    settings.check()

    assert settings == Settings()
    assert settings.database_path == Path("data/tidings.db")
    assert (settings.host, settings.port, settings.timezone) == ("127.0.0.1", 8020, ZoneInfo("UTC"))
    assert settings.expire_after == timedelta(hours=24)  # B8
    assert {name: channel.kind for name, channel in settings.channels.items()} == {
        "phone": "sandbox",
        "console": "console",
    }
    assert settings.origins == {}


def test_the_file_is_beaten_by_the_environment_and_that_by_flags(loaded: Loader) -> None:
    """One TOML file < environment < flags; a flag that was not given is not a flag."""
    text = "port = 1\nconcurrency = 1\npoll_interval = '250ms'\nsandbox = false"
    settings = loaded(
        text, {"TIDINGS_PORT": "2", "TIDINGS_CONCURRENCY": "2", "PATH": "/bin"}, port=3, poll_interval=None
    )

    assert (settings.port, settings.concurrency, settings.poll_interval) == (3, 2, timedelta(milliseconds=250))
    assert settings.sandbox is False


def test_what_was_set_is_known_apart_from_what_is_default(loaded: Loader, tmp_path: Path) -> None:
    """Unset is not the same as set to the default."""
    settings = loaded("port = 8020", {"TIDINGS_CONCURRENCY": "100"}, host="127.0.0.1")

    assert settings.origins == {
        "port": str(tmp_path / "tidings.toml"),
        "concurrency": "TIDINGS_CONCURRENCY",
        "host": "--host",
    }


def test_channel_concurrency_is_the_concurrency_unless_set(loaded: Loader) -> None:
    """A1: an unset cap is no cap of its own."""
    assert loaded(concurrency=7).channel_concurrency == 7
    assert loaded(concurrency=7, channel_concurrency=3).channel_concurrency == 3


def test_every_setting_can_be_given_in_the_file_and_in_the_environment(loaded: Loader) -> None:
    """A11: the same words in both."""
    values = {
        "database": "postgresql://ada@db.example/tidings",
        "host": "::1",
        "port": "9000",
        "public_url": "https://tidings.example.com",
        "api_keys": "k" * 32,
        "encryption_keys": "5e" * 32,
        "timezone": "Europe/Berlin",
        "concurrency": "256",
        "channel_concurrency": "16",
        "poll_interval": "2s",
        "node_timeout": "20s",
        "heartbeat_interval": "1s",
        "expire_after": "1h",
        "quarantine_after": "5",
        "breaker_threshold": "7",
        "breaker_timeout": "30s",
        "history_retention": "7d",
        "message_retention": "14d",
        "idempotency_retention": "12h",
        "dead_letter_retention": "30d",
        "broadcast_batch_size": "500",
        "broadcast_batches": "4",
        "health_min_success_rate": "95%",
        "health_max_error_rate": "0.05",
        "health_max_queue_depth": "500",
        "health_max_poll_age": "1m",
        "audit_retention": "90d",
        "migration_retention": "60d",
        "max_body": "1MiB",
        "max_bulk": "10",
        "migration_queues": "tenant=acme,priority=1",
        "migration_folder": "/srv/moves",
        "migration_api_files": "true",
        "migration_api_private": "true",
        "max_header": "32KiB",
        "header_timeout": "5s",
        "max_connections": "100",
        "log_format": "json",
        "log_level": "debug",
        "log_output": "stdout",
        "log_successes": "false",
        "sandbox": "false",
        "sandbox_port": "9001",
        "events_private": "true",
        "events_secrets": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
        "alert_channel": "phone",
        "alert_to": "ops,boss",
        "statsd": "127.0.0.1:8125",
        "otel": "true",
        "memory_limit": "512MiB",
        "broker": "amqp://tidings@rabbit/tidings",
        "broker_allow_plaintext": "true",
        "broker_channels": "phone,console",
        "trusted_proxies": "127.0.0.1,10.0.0.0/8",
        "broker_message_ttl": "5s",
        "broker_management": "https://monitor:secret@rabbit:15671",
        "metrics_port": "9020",
        "replica": "postgresql://standby/tidings",
        "compat": "connect",
        "max_messages_per_process": "1000",
        "max_memory_per_process": "256MiB",
    }
    simple = {item.name for item in dataclasses.fields(Settings) if item.metadata}

    by_environment = loaded(None, {f"TIDINGS_{name.upper()}": value for name, value in values.items()})
    by_file = loaded("\n".join(f'{name} = "{value}"' for name, value in values.items()))

    assert simple == set(values)
    assert dataclasses.replace(by_file, origins={}) == dataclasses.replace(by_environment, origins={})
    assert by_file.max_body == 1024 * 1024
    assert by_file.database_path is None


SEVERAL = ("amqps://u:o,ne@a:5671/x", "amqps://u:two@b/x")


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f"broker = {list(SEVERAL)}", {}),
        (f"broker = '{', '.join(SEVERAL)}'", {}),
        (None, {"TIDINGS_BROKER": ",".join(SEVERAL)}),
        ("broker = 'env:BROKERS'", {"BROKERS": ",".join(SEVERAL)}),
        ("broker = ['env:ONE', 'env:TWO']", dict(zip(("ONE", "TWO"), SEVERAL, strict=True))),
    ],
)
def test_a_cluster_of_brokers_is_a_list_or_has_commas(
    loaded: Loader, text: str | None, environ: dict[str, str]
) -> None:
    """A comma in a password splits nothing, and no password is shown."""
    settings = loaded(text, environ)

    assert settings.broker == SEVERAL
    assert settings.describe()["broker"] == ["amqps://u:***@a:5671/x", "amqps://u:***@b/x"]


def test_a_password_of_the_second_broker_keeps_the_file_private(loaded: Loader) -> None:
    """A readable file is refused wherever in the list the password is."""
    with pytest.raises(Misconfigured, match="holds broker in clear"):
        loaded("broker = 'amqps://a/,amqps://u:secret@b/'", mode=0o644)


def test_every_setting_says_what_it_is_for() -> None:
    """The reference page is made of these."""
    assert all(item.metadata["about"] for item in dataclasses.fields(Settings) if item.metadata)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 8020", r"unknown setting 'prot' in .*tidings\.toml\. Did you mean 'port'"),
        ("[chanels.x]\nkind = 'webhook'", "Did you mean 'channels'"),
        ("zzzzzz = 1", "Known names: alert"),
        ("port = 70000", r"port in .*tidings\.toml is 70000\. Use a whole number from 0 to 65535"),
        ("port = 80.5", "port in .* whole number"),
        ("port = true", "port in .* whole number"),
        ("port = ''", "port in .* whole number"),
        ("concurrency = 0", "whole number from 1"),
        ("host = ''", "host in .* not a string"),
        ("timezone = 'Mars/Base'", "not a time zone"),
        ("timezone = '../etc/passwd'", "not a time zone"),
        ("timezone = 1", "not a time zone"),
        ("poll_interval = '1 month'", "poll_interval in .* Use a duration"),
        ("poll_interval = 0", "must be greater than zero"),
        ("sandbox = 'maybe'", "Use true or false"),
        ("sandbox = 1", "Use true or false"),
        ("max_body = 'huge'", "Use a size"),
        ("max_body = 0", "Use a size"),
        ("log_level = 'loud'", "Use one of: debug"),
        ("api_keys = ['short']", "shorter than 16 characters"),
        ("api_keys = [1]", "not a list of strings"),
        ("encryption_keys = ['short']", "keys of 64 hex digits"),
        ("broker = 'rabbit'", "broker in .* is 'rabbit'. Use the URL of a RabbitMQ"),
        ("broker = 'amqps://a:port/'", "broker in .* is 'amqps://a:port/'"),
        ("broker = 'amqps://u:pw@a,b/'", r"is 'amqps://u:\*\*\*@a,b/'. .* separate several URLs"),
        ("broker = ['amqps://a/', 5]", "broker in .* not a string"),
        ("port = ", "is not valid TOML"),
        ("channels = 1", r"channels in .* is not a table\. Write \[channels.NAME\]"),
        ("[channels]\nphone = 1", r"channels.phone in .* is not a table"),
        ("[channels.hook]\nurl = 'x'", "channels.hook has no kind"),
        ("[channels.hook]\nkind = ''", "channels.hook has no kind"),
        ("[channels.'a b']\nkind = 'webhook'", "channel name 'a b'"),
        ("[channels.hook]\nkind = 'webhook'\npolicy = 'defualt'", "Did you mean 'default'"),
        ("policies = 1", "policies in .* is not a table"),
        ("[policies.gentle]\nmax_attempts = 3", r"policies.gentle.backoff is missing \(in .*tidings\.toml\)"),
        ("[policies.default]\nmax_attempts = 3", "name of a built-in policy"),
    ],
)
def test_what_is_unknown_or_malformed_stops_the_start(loaded: Loader, text: str, words: str) -> None:
    """Naming the key, the file and the closest match or the remedy."""
    with pytest.raises(Misconfigured, match=words) as refused:
        loaded(text)

    assert refused.value.exit_code == 78


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TIDINGS_PROT", "1", "unknown setting 'TIDINGS_PROT' in the environment. Did you mean 'TIDINGS_PORT'"),
        ("TIDINGS_PORT", "http", "port in TIDINGS_PORT is 'http'"),
        ("TIDINGS_PORT", "", "port in TIDINGS_PORT is ''"),
        ("TIDINGS_CHANNELS", "x", "TIDINGS_CHANNELS__NAME__OPTION"),
        ("TIDINGS_CHANNELS__PHONE", "x", "TIDINGS_CHANNELS__NAME__OPTION"),
        ("TIDINGS_CHANNELS__HOOK__URL", "x", "channels.hook has no kind"),
        ("TIDINGS_POLICIES__MINE__CAP", "1h", "policies are set in the file"),
    ],
)
def test_a_variable_that_is_not_understood_stops_the_start(
    loaded: Loader, variable: str, value: str, words: str
) -> None:
    """Set to nothing is set, and a misspelt variable is not ignored."""
    with pytest.raises(Misconfigured, match=words):
        loaded(None, {variable: value})


def test_an_unknown_flag_is_refused_like_any_other_key(loaded: Loader) -> None:
    """Overrides go the same way."""
    with pytest.raises(Misconfigured, match="unknown setting 'prot' in --prot"):
        loaded(prot=1)


def test_variables_of_the_tests_are_left_alone(loaded: Loader) -> None:
    """The test suite has variables of its own that reach the processes it starts."""
    assert loaded(None, {"TIDINGS_TEST_POSTGRES": "x", "TIDINGS_CRASH_AT": "sent:3"}) == Settings()


def test_a_file_can_be_named_by_flag_or_variable(tmp_path: Path) -> None:
    """--config wins over TIDINGS_CONFIG; one that was named must be there."""
    (tmp_path / "one.toml").write_text("port = 1")
    (tmp_path / "two.toml").write_text("port = 2")
    environ = {"TIDINGS_CONFIG": str(tmp_path / "one.toml")}

    assert load(environ=environ, folder=tmp_path).port == 1
    assert load(tmp_path / "two.toml", environ=environ, folder=tmp_path).port == 2
    with pytest.raises(Misconfigured, match=r"--config names .*none\.toml"):
        load(tmp_path / "none.toml", environ=environ)
    with pytest.raises(Misconfigured, match="TIDINGS_CONFIG names"):
        load(environ={"TIDINGS_CONFIG": str(tmp_path)}, folder=tmp_path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """In one sentence, not in a stack trace."""
    (tmp_path / "tidings.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Misconfigured, match="is not valid TOML"):
        load(environ={}, folder=tmp_path)


@pytest.mark.parametrize("url", ["sqlite:///tidings.db", "sqlite:////var/lib/t.db", "postgresql:///t?host=/tmp"])
def test_both_databases_are_accepted(loaded: Loader, url: str) -> None:
    """A file or a server."""
    assert loaded(database=url).database == url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root@localhost/x", "unsupported scheme 'mysql'"),
        ("postgres://localhost/x", "unsupported scheme 'postgres'.*postgresql://"),
        ("postgresql+asyncpg://localhost/x", "unsupported scheme"),
        ("tidings.db", "not a database URL"),
        ("sqlite://tidings.db", "does not name a file"),
        ("sqlite:///", "does not name a file"),
        ("sqlite:////", "does not name a file"),
        ("sqlite:///x.db?mode=ro", "does not name a file"),
        ("sqlite:///:memory:", "is not durable"),
        ("postgresql://", "unsupported scheme"),
        ("", "not a string"),
    ],
)
def test_a_wrong_database_url_is_refused_with_the_right_ones(loaded: Loader, url: str, words: str) -> None:
    """The remedy shows both forms."""
    with pytest.raises(Misconfigured, match=words) as refused:
        loaded(database=url)

    assert refused.value.field == "database"
    assert "sqlite:///data/tidings.db" in refused.value.remedy or not url


def test_channels_come_from_the_file_and_the_environment(loaded: Loader) -> None:
    """An option in the environment replaces the file's; names may differ in case and dashes."""
    text = "[channels.my-hook]\nkind = 'webhook'\nurl = 'https://a.example'\nper_second = 5"
    settings = loaded(
        text,
        {
            "TIDINGS_CHANNELS__MY_HOOK__URL": "https://b.example",
            "TIDINGS_CHANNELS__OTHER__KIND": "console",
            "TIDINGS_CHANNELS__PHONE__COLOUR": "blue",
        },
    )

    assert set(settings.channels) == {"my-hook", "other", "phone"}
    assert settings.channels["my-hook"].options == {"url": "https://b.example", "per_second": 5}
    assert settings.channels["phone"].kind == "sandbox"


def test_policies_of_ones_own_join_the_ready_made_ones(loaded: Loader) -> None:
    """A3: a policy, not a constant; a channel may name it."""
    settings = loaded("[policies.gentle]\ntable = ['1m', '10m']\n[channels.hook]\nkind = 'webhook'\npolicy = 'gentle'")

    assert set(settings.all_policies) == {"default", "stepped", "exponential", "quick", "events", "gentle"}
    assert settings.policies["gentle"].rule.max_attempts == 3
    assert settings.describe()["policies"] == {"gentle": "3 attempts, 1 min, 10 min"}


def test_a_secret_can_be_given_by_reference(loaded: Loader, tmp_path: Path) -> None:
    """From the environment or a file, resolved at the start, also within lists and tables."""
    (tmp_path / "hook.key").write_text(f"{CANARY}\n")
    text = (
        "api_keys = ['env:API_KEY']\ndatabase = 'env:DB'\n[channels.hook]\nkind = 'webhook'\n"
        "secrets = ['file:hook.key', 'env:OLD']\nheaders = { X-Team = 'env:OLD' }"
    )
    environ = {"API_KEY": CANARY, "DB": f"postgresql://ada:{CANARY}@db/t", "OLD": f"old-{CANARY}"}
    settings = loaded(text, environ, mode=0o644)

    options = settings.channels["hook"].options
    assert settings.api_keys == (CANARY,)
    assert settings.database == environ["DB"]
    assert options["secrets"] == [CANARY, f"old-{CANARY}"]
    assert options["headers"] == {"X-Team": f"old-{CANARY}"}
    assert CANARY not in repr(settings) + repr(options) + str(settings.describe())
    assert settings.describe()["channels"]["hook"]["secrets"] == ["file:hook.key", "env:OLD"]


def test_api_keys_in_the_environment_are_separated_by_commas(loaded: Loader) -> None:
    """For rotation there may be two."""
    settings = loaded(None, {"TIDINGS_API_KEYS": f"env:ONE, {'b' * 16}", "ONE": "a" * 16})

    assert settings.api_keys == ("a" * 16, "b" * 16)


@pytest.mark.parametrize("reference", ["env:NOWHERE", "env:EMPTY", "file:/nowhere/at/all", "file:empty", "file:."])
def test_a_reference_to_nothing_stops_the_start(loaded: Loader, tmp_path: Path, reference: str) -> None:
    """A missing secret is found at the start and not at the first send."""
    (tmp_path / "empty").touch()
    with pytest.raises(Misconfigured, match=r"channels\.hook\.token in .* refers to") as refused:
        loaded(f"[channels.hook]\nkind = 'webhook'\ntoken = '{reference}'", {"EMPTY": ""})

    assert refused.value.field == "channels.hook.token"


@pytest.mark.parametrize(
    "text",
    [
        f"[channels.hook]\nkind = 'webhook'\nsecret = '{CANARY}'",
        f"[channels.hook]\nkind = 'webhook'\nsecrets = ['{CANARY}']",
        f"[channels.hook]\nkind = 'telegram'\nbot_token = '{CANARY}'",
        f"[channels.hook]\nkind = 'webhook'\nheaders = {{ Authorization = '{CANARY}' }}",
        f"[channels.mail]\nkind = 'smtp'\nurl = 'smtp://ada:{CANARY}@mail.example'",
        f"api_keys = ['{CANARY}']",
        f"database = 'postgresql://ada:{CANARY}@db.example/t'",
    ],
)
def test_a_secret_in_clear_needs_a_private_file(loaded: Loader, text: str) -> None:
    """S20: what everybody on the machine can read must hold none; a private file may."""
    with pytest.raises(Misconfigured, match=r"is world-readable.*chmod 600") as refused:
        loaded(text, mode=0o644)
    settings = loaded(text, mode=0o640)

    assert CANARY not in str(refused.value)
    assert CANARY not in repr(settings) + repr(settings.channels) + str(settings.describe())


def test_a_file_without_secrets_may_be_read_by_everybody(loaded: Loader) -> None:
    """An ordinary file with ordinary permissions is fine, also with a channel called key."""
    text = "port = 1\n[channels.key]\nkind = 'webhook'\nurl = 'http://127.0.0.1:9000/users/@me'"
    settings = loaded(text, mode=0o644)

    assert settings.channels["key"].options["url"] == "http://127.0.0.1:9000/users/@me"


def test_a_malformed_value_of_a_secret_setting_is_not_repeated(loaded: Loader) -> None:
    """S9: error messages go to logs."""
    for text in (f"api_keys = ['{CANARY}', 'short']", f"database = '{CANARY}'", f"database = 'x://a:{CANARY}@b'"):
        with pytest.raises(Misconfigured) as refused:
            loaded(text)
        assert CANARY not in str(refused.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "tidings.example"])
def test_an_open_door_needs_a_key(loaded: Loader, host: str) -> None:
    """S20: others can reach it, so callers must show a key: one of the settings or of the database."""
    with pytest.raises(Misconfigured, match="there is no admin key"):
        loaded(host=host).require_key_unless_local(has_admin=False)

    loaded(host=host, api_keys=["k" * 32]).require_key_unless_local(has_admin=False)
    loaded(host=host).require_key_unless_local(has_admin=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "::1", "localhost"])
def test_loopback_needs_no_key(loaded: Loader, host: str) -> None:
    """S20: the first run on a laptop."""
    loaded(host=host).require_key_unless_local(has_admin=False)


def test_thresholds_of_alerts_are_read_from_file_and_environment(loaded: Loader) -> None:
    """B11: each in its unit; what is not named keeps its default, and the environment wins."""
    settings = loaded(
        "[alerts]\noverdue = 5000\nlate = '25 %'\ndatabase_full = '1GiB'", environ={"TIDINGS_ALERTS__OVERDUE": "7000"}
    )

    assert (settings.alerts.overdue, settings.alerts.late, settings.alerts.database_full) == (7000, 0.25, 1 << 30)
    assert settings.alerts.errors == 0.01
    assert settings.origins["alerts.overdue"] == "TIDINGS_ALERTS__OVERDUE"
    assert settings.describe()["alerts"]["database_full"] == "1024MiB"
    assert settings.describe()["alerts"]["job_stalled"] == "30 min"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("late = 1.5", "alerts.late .*Use a share such as 0.05 or 5%"),
        ("late = true", "alerts.late .*Use a share"),
        ("overdue = 0", "alerts.overdue .*Use a whole number from 1"),
        ("database_slow = 'soon'", "alerts.database_slow .*Use a duration"),
        ("over_due = 3", "unknown setting 'alerts.over_due'.*Did you mean 'overdue'"),
    ],
)
def test_a_threshold_that_is_not_understood_is_refused(loaded: Loader, line: str, said: str) -> None:
    """A mistake stops the start, with the setting and the remedy."""
    with pytest.raises(Misconfigured, match=said):
        loaded(f"[alerts]\n{line}")


def test_settings_that_contradict_each_other_are_refused(loaded: Loader) -> None:
    """B5: a node timeout under two heartbeats declares live nodes dead; two listeners need two ports."""
    with pytest.raises(Misconfigured, match="less than twice heartbeat_interval"):
        loaded(node_timeout="3s", heartbeat_interval="2s").check()
    with pytest.raises(Misconfigured, match="are both 8025"):
        loaded(port=8025).check()
    loaded(port=8025, sandbox=False).check()


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("sqlite:///data/tidings.db", "sqlite:///data/tidings.db"),
        ("postgresql://ada@db:5432/t", "postgresql://ada@db:5432/t"),
        ("postgresql://ada:pw@db:5432/t", "postgresql://ada:***@db:5432/t"),
        ("postgresql://ada:p/w?@x@db/t", "postgresql://ada:***@db/t"),
        ("https://host/hook?token=x#y", "https://host/hook?***"),
        ("https://host:80/hook", "https://host:80/hook"),
    ],
)
def test_a_url_is_shown_without_password_and_query(url: str, masked: str) -> None:
    """S9: secrets never in logs, dumps or pages."""
    assert mask_url(url) == masked


def test_a_secret_is_text_that_does_not_show_itself() -> None:
    """S9: it works wherever text does."""
    secret = Secret(CANARY, "env:KEY")

    assert secret == CANARY
    assert len(secret.encode()) == len(CANARY)
    assert repr(secret) == "<secret env:KEY>"


def test_settings_cannot_be_changed_afterwards() -> None:
    """One frozen object."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


def test_the_real_environment_is_the_usual_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without being told otherwise, variables of the process and ./tidings.toml count."""
    for variable in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDINGS_PORT", "4")
    (tmp_path / "tidings.toml").write_text("concurrency = 5")

    assert (load().port, load().concurrency) == (4, 5)
