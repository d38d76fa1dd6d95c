"""The composition root: assembles a running gateway from the settings, and reconfigures it on reload."""

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.accounts.certificate import open_credential
from penstock.accounts.keyring import Keyring
from penstock.billing.admission import Admission
from penstock.billing.record_retention import RecordAges, RecordRetention
from penstock.billing.usage_writer import UsageWriter
from penstock.chat.kept.keeper import ResponseKeeper
from penstock.chat.kept.responses import KeptResponses
from penstock.chat.relay import ChatPolicy, Relay
from penstock.chat.sound_length import SoundMeter
from penstock.clocks import CLOCKS, Clocks
from penstock.configuration.live import LiveSettings
from penstock.content_log.build import make_content_policy
from penstock.content_log.log import ContentLog
from penstock.dispatch import Dispatch, Run
from penstock.dispatch.leadership import Appointment, Leadership
from penstock.dispatch.local import LocalDispatch
from penstock.domain.files import StoredFile
from penstock.domain.ids import new_id
from penstock.domain.jobs import Claim
from penstock.domain.kept.responses import KeepPolicy
from penstock.domain.people.sign_in import SessionPolicy
from penstock.domain.sharing.links import ShareTokens
from penstock.errors import StoreUnavailable
from penstock.fairness.body_memory import BodyMemory, make_bounds
from penstock.fairness.fair_share import Bounds, FairShare
from penstock.guardrails.build import build_guardrails
from penstock.guardrails.guardrails import Guardrail, Guardrails
from penstock.inspection.worker_pool import ProcessPool
from penstock.jobs.collection import Collection
from penstock.jobs.context import RunnerServices
from penstock.jobs.durations import REMEMBERED, History
from penstock.jobs.files.inputs import Inputs
from penstock.jobs.files.resumable import ResumableUploads
from penstock.jobs.files.signing import ResultSigner
from penstock.jobs.housekeeping import Upkeep
from penstock.jobs.intake import Intake, JobPolicy
from penstock.jobs.pipelines.intake import PipelineIntake
from penstock.jobs.polling import Cadence, Polling
from penstock.jobs.progress import ProgressChannels
from penstock.jobs.quarantine import Quarantine
from penstock.jobs.records import RecordBuilder
from penstock.jobs.runner import Runner
from penstock.observability import contents, logs, metrics, traces
from penstock.offers.build import build_offers, schemas_wanted
from penstock.offers.offer import Offers
from penstock.offers.price_places import ORIGINS, count_unpriced
from penstock.offers.price_proposal import count_drift
from penstock.offers.price_watch import PriceWatch
from penstock.ports import Ports
from penstock.safe_fetch.policy import check_url
from penstock.sealing.master_keys import MasterKeys
from penstock.sealing.vault import Vault
from penstock.settings.tables import Provenance, Settings
from penstock.sign_in.provider import ProviderOptions
from penstock.sign_in.sessions import ConsoleSessions
from penstock.sign_in.sign_in import SignIn
from penstock.storage.assets import Assets
from penstock.storage.open_uploads import UploadFolder
from penstock.storage.previews import Previews
from penstock.storage.signed_links import LinkSigner
from penstock.store import connect
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.event_reader import EventReader
from penstock.store.group_commit import GroupCommit
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.runs import amendment_rows
from penstock.upstream.callback_urls import CallbackUrls
from penstock.upstream.connection_test import ConnectionTests
from penstock.upstream.exchange import Exchange
from penstock.upstream.schema_discovery import SchemaRefresher, find_schema, learn_schemas
from penstock.vendor_api.generation import GenerationVendor
from penstock.webhooks.delivery import DeliveryWorker

if TYPE_CHECKING:
    from penstock.jobs.files.verification import Verifier
    from penstock.provenance.credential import Credential
    from penstock.safe_fetch.fetcher import SafeFetcher

FIXED = (
    "data",
    "database_url",
    "assets_url",
    "weights",
    "temporal",
    "temporal_namespace",
    "temporal_queue",
    "server.host",
    "server.port",
    "server.max_body_mb",
    "server.drain_seconds",
    "server.metrics_port",
    "server.max_connections",
    "server.max_connections_per_address",
    "server.proxies",
    "server.write_timeout",
    "server.log_level",
    "server.log_format",
    "jobs.max_held",
    "jobs.run",
    "content_log.export",
    "facades.off",
)
"""Settings that are read once, at the start."""

UPLOAD_CPU_SECONDS = 15
"""CPU time limit of one picture. The largest take 3 seconds on a slow core."""
OUTPUT_CPU_SECONDS = 120
"""CPU time limit of one output: enough for some minutes of video in 4K."""
TAKE_OVER_SECONDS = 0.5
"""Interval in which a standby server tries to take over."""
VENDOR_LINK_SECONDS = 86_400.0
"""Life of a link by which a vendor fetches an input file: an order may wait for long in its queue."""
REMEMBER_SECONDS = 60.0
"""Interval in which a standby server reads the durations of recent jobs."""

log = logging.getLogger(__name__)


def appoint(settings: Settings) -> Leadership | Appointment:
    """Return who runs the jobs: the first server on a folder, or every server on PostgreSQL that is set to."""
    if connect.is_file(settings.database_url):
        return Leadership(settings.data)
    return Appointment(is_held=settings.jobs.run == "here")


class Gateway:
    """Everything behind the web and the command line. `await Gateway.open(settings)`, then `close`."""

    leadership: Leadership | Appointment
    database: Database
    assets: Assets
    links: LinkSigner
    share_tokens: ShareTokens
    vault: Vault
    run_time: LiveSettings
    inputs: Inputs
    uploads: ResumableUploads
    intake: Intake
    pipelines: PipelineIntake
    contact: StoreContact
    sound_meter: SoundMeter
    keyring: Keyring
    sessions: ConsoleSessions
    sign_in: SignIn
    prices: PriceWatch
    dispatch: Dispatch
    upkeep: Upkeep
    delivery: DeliveryWorker
    admission: Admission
    usage_writer: UsageWriter
    relay: Relay
    content_log: ContentLog
    kept: KeptResponses
    keeper: ResponseKeeper
    exchange: Exchange
    hooks: CallbackUrls

    def __init__(self, settings: Settings, ports: Ports, clocks: Clocks) -> None:
        self.settings = settings
        self.ports = ports
        self.clocks = clocks
        self.clock, self.steady = clocks
        self.max_body_mb = settings.server.max_body_mb  # read once, at the start
        self.offers = build_offers(settings, None, clocks)
        self.guardrails = Guardrails(self.clock, self.steady)
        self.guardrails.use(_make_guardrails(settings, self.offers))
        self._rules = _make_rules(settings)
        self.history = History()
        self.started_at = clocks.now()
        self.draining = False
        self.streams = FairShare()
        self.body_memory = BodyMemory(self._body_bounds)
        self._resources = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._learning = SchemaRefresher(self._knows_schemas, self._ask_for_schemas)
        self._succession: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fetcher: SafeFetcher | None = None
        self._is_assembled = False

    @classmethod
    async def open(
        cls,
        settings: Settings,
        leadership: Leadership | Appointment | None = None,
        ports: Ports = Ports(),  # noqa: B008  frozen
        clocks: Clocks = CLOCKS,
    ) -> "Gateway":
        """Open the store, learn from its history, and take up every unfinished job unless another server runs them."""
        gateway = cls(settings, ports, clocks)
        _hide_secrets(settings)
        traces.start(os.environ)
        gateway._resources.push_async_callback(traces.stop)
        gateway.leadership = leadership or appoint(settings)
        gateway.leadership.take()
        gateway._resources.callback(gateway.leadership.release)  # last of all, when nothing is left to be written
        try:
            await gateway._open()
        except BaseException:
            await gateway._resources.aclose()
            raise
        return gateway

    async def _open(self) -> None:
        self.database = await self.ports.open_database(self.settings.database_url)
        self._resources.push_async_callback(self.database.close)
        await self.database.watch()
        self.news = EventReader(self.database)
        self._resources.push_async_callback(self.news.stop)
        self.vault = Vault(self.database, self._master_keys, self.clock)
        await self.vault.check()
        self.prices = PriceWatch(self.database, self._use_prices)
        await self._open_run_time()
        await self.prices.learn()
        await self._assemble()
        self._is_assembled = True
        self.run_time.start()
        self._resources.push_async_callback(self.run_time.stop)
        self.prices.start()
        self._resources.push_async_callback(self.prices.stop)
        self._watch_prices()
        self._resources.push_async_callback(self._learning.stop)
        await self._learn()
        await self._remember()

    async def _open_run_time(self) -> None:
        """Add the vendors and models of the run-time settings to those of the file."""
        tests = ConnectionTests(self.ports.open_http_client, self.steady)
        self.run_time = LiveSettings(
            self.settings,
            self.database,
            self.vault,
            self.clocks,
            new_id("process"),
            self._use,
            lambda: self.offers,
            tests,
        )
        await self.run_time.follow()

    async def close(self) -> None:
        """Stop in the reverse order of `open`; unfinished jobs stay in the store as they are."""
        self.drain()
        await self.delivery.stop()
        await self._resources.aclose()

    def drain(self) -> None:
        """Release all waiting requests: streams end, `wait` returns the current state."""
        self.draining = True
        self._succession.cancel()
        self.database.signals.ring_all()

    async def reload(self, settings: Settings) -> None:
        """Use new settings of the file for all new work, with the run-time settings."""
        await self.run_time.reload(settings)

    async def _use(self, settings: Settings) -> None:
        """Use new settings for all new work; log those that need a restart. What can fail comes before all changes."""
        offers = build_offers(settings, self.offers, self.clocks, self.prices.rows)
        guardrails = _make_guardrails(settings, offers)
        if self._is_assembled and settings.provenance != self.settings.provenance:
            self._find_credential = await self._open_credential(settings.provenance)
        for name in FIXED:
            wanted, used = attrgetter(name)(settings), attrgetter(name)(self.settings)
            if wanted != used:
                log.warning("a changed setting needs a restart", extra={"fields": {"setting": name}})
        _hide_secrets(settings)
        former, former_chat = list(self.offers.by_credential.values()), self.offers.chat_vendors.values()
        self.settings, self.offers, self._fetcher = settings, offers, None
        self.guardrails.use(guardrails)
        self._rules, self._chat_policy = _make_rules(settings), _make_chat_policy(settings)
        if not self._is_assembled:
            return
        self.sign_in.use(_make_providers(settings))
        self.relay.routes.forget()
        self.dispatch.reseat()
        await self._learn()
        await _close_all(vendor for vendor in former if vendor not in offers.by_credential.values())
        for vendor in former_chat:
            if vendor.server is not None and vendor not in offers.chat_vendors.values():
                await asyncio.to_thread(vendor.server.retire)

    def _open_admission(self, secret: bytes) -> None:
        """Open keys, limits and budgets, and their fallback while the store is unavailable."""
        self.contact = contact = StoreContact(self.database, lambda: self.settings.chat.outage_seconds, self.steady)
        metrics.STORE_AWAY.set_function(lambda: contact.away_seconds)
        self.keyring = Keyring(self.database, secret, self.clock, self.steady, contact)
        self.keyring.start()
        self._resources.push_async_callback(self.keyring.stop)
        self.admission = Admission(self.database, new_id("process"), self.clocks, contact)
        self._resources.push_async_callback(self.admission.stop)
        self._open_sign_in(secret)

    def _open_sign_in(self, secret: bytes) -> None:
        policy = lambda: self.session_policy  # noqa: E731  as short as the others
        self.sessions = ConsoleSessions(self.database, secret, policy, self.clock, self.steady)
        self._resources.push_async_callback(self.sessions.stop)
        self.sign_in = SignIn(self.database, self.vault, policy, self.clocks)
        self.sign_in.use(_make_providers(self.settings))
        self._resources.push_async_callback(self.sign_in.stop)

    @property
    def session_policy(self) -> SessionPolicy:
        """Return the limits of sessions in the settings."""
        return self.settings.session_policy

    def forget_access(self) -> None:
        """Look up keys, roles and sessions again, as something was changed here."""
        self.keyring.forget()
        self.sessions.forget()

    def _open_content_log(self) -> None:
        """Open the log of prompts and answers. It is written to as long as requests are served."""
        policy = lambda: make_content_policy(self.settings.content_log)  # noqa: E731  as short as the others
        self.content_log = ContentLog(self.database, self.vault, policy, self.clocks)
        if self.settings.content_log.export == "otlp":
            contents.start(os.environ)
            self._resources.push_async_callback(contents.stop)
        self._resources.push_async_callback(self.content_log.stop)

    async def _assemble(self) -> None:
        secret = await self.database.write(key_rows.signing_secret)
        self.links = LinkSigner(secret)
        self.share_tokens = ShareTokens(secret)
        self._find_credential = await self._open_credential(self.settings.provenance)
        self._resources.push_async_callback(self.guardrails.close)
        await self._open_assets()
        self._open_admission(secret)
        self._open_content_log()
        uploads, outputs = self._open_process_pools()
        self.sound_meter = SoundMeter(uploads)
        self.previews = Previews(self.assets, uploads)
        self._open_inputs(uploads)
        self._open_upkeep()
        self._open_intake()
        self.delivery = DeliveryWorker(self.database, self.open_fetcher, self.scribe, self.clock, self.steady)
        self.hooks = CallbackUrls(secret, lambda: self.settings.server.public_url)
        open_http_client = partial(self.ports.open_http_client, lambda: self.settings.fetch.allow_networks)
        self.exchange = exchange = Exchange(self.assets.get_file, open_http_client, self._link_for_vendor)
        self._resources.push_async_callback(self._close_vendors)
        self._resources.push_async_callback(exchange.close)
        await self._open_chat(exchange)
        channels = ProgressChannels(exchange)
        self._resources.push_async_callback(channels.close)
        services = self._make_services(exchange, channels, outputs)
        await self.upkeep.start()
        self._resources.push_async_callback(self.upkeep.stop)
        metrics.watch_open_jobs(lambda: self.upkeep.backlog.by_state)
        self.dispatch = self._make_dispatch()
        self._resources.push_async_callback(self.dispatch.stop)
        await self._join(Runner(services).run)

    def _open_intake(self) -> None:
        self.intake = Intake(
            self.database,
            self.inputs,
            lambda: self.offers,
            lambda: self._rules,
            self.history,
            self.upkeep.backlog,
            self.admission,
            self.guardrails,
            self.content_log,
            self.clock,
        )
        self.pipelines = PipelineIntake(
            self.database,
            self.intake,
            lambda: self.offers,
            lambda: self._rules,
            self.history,
            self.admission,
            self.clock,
        )

    def _make_services(self, exchange: Exchange, channels: ProgressChannels, outputs: ProcessPool) -> RunnerServices:
        return RunnerServices(
            database=self.database,
            writes=GroupCommit(self.database, amendment_rows.amend_all),
            offers=lambda: self.offers,
            exchange=exchange,
            polling=Polling(exchange, self.steady),
            channels=channels,
            quarantine=Quarantine(steady=self.steady),
            collection=Collection(exchange, self.assets, outputs, self._make_signer(outputs)),
            inputs=self.inputs,
            history=self.history,
            cadence=Cadence(),
            clock=self.clock,
            is_sure=self._is_sure,
            webhook=self.hooks.address,
            steady=self.steady,
        )

    def _make_signer(self, outputs: ProcessPool) -> ResultSigner:
        is_signed = lambda: self.settings.provenance.results == "signed"  # noqa: E731  as short as the others
        return ResultSigner(outputs, self.assets, lambda: self.credential if is_signed() else None, self.clock)

    def _master_keys(self) -> MasterKeys:
        table = self.settings.sealing
        given = (None if key is None else key.get_secret_value() for key in (table.master_key, table.previous_key))
        return MasterKeys.of(self.settings.data, *given)

    @property
    def credential(self) -> "Credential":
        """Return the certificate and the key that sign results."""
        return self._find_credential()

    @cached_property
    def verifier(self) -> "Verifier":
        """Return what verifies signatures."""
        from penstock.jobs.files.verification import Verifier  # noqa: PLC0415 - slow to load, and rarely needed

        trust = lambda: self.settings.provenance.trust or ""  # noqa: E731  as short as the others
        return Verifier(self._file_pool, lambda: self.credential, trust, self.clock)

    async def _open_credential(self, table: Provenance) -> "Callable[[], Credential]":
        key = None if table.private_key is None else table.private_key.get_secret_value()
        return await open_credential(self.database, table.certificate, key, self.clock())

    def _make_dispatch(self) -> Dispatch:
        most = self.settings.jobs.max_held
        if connect.is_file(self.settings.database_url):
            return LocalDispatch(self.database, self._seats, most, self.clock, self.steady)
        name = "postgres" if self.settings.temporal is None else "temporal"
        module: Any = importlib.import_module(f"penstock.dispatch.{name}")
        if self.settings.temporal is None:
            return module.PostgresDispatch(self.database, self._all_seats, most, self.clock, steady=self.steady)
        settings = self.settings
        place = module.TemporalAddress(settings.temporal, settings.temporal_namespace, settings.temporal_queue)
        return module.TemporalDispatch(self.database, self._all_seats, most, self.clock, place, steady=self.steady)

    def _open_process_pools(self) -> tuple[ProcessPool, ProcessPool]:
        """Create separate pools for callers' files and for outputs, so that no result waits behind an upload."""
        uploads = self.ports.open_pool(2, seconds=60, cpu_seconds=UPLOAD_CPU_SECONDS)
        outputs = self.ports.open_pool(3, seconds=120, cpu_seconds=OUTPUT_CPU_SECONDS, threads=True)
        self._resources.push_async_callback(uploads.close)
        self._resources.push_async_callback(outputs.close)
        self._surveying = asyncio.ensure_future(self.ports.survey())
        self._resources.push_async_callback(asyncio.wait, [self._surveying])
        return uploads, outputs

    def _open_inputs(self, pool: ProcessPool) -> None:
        most = lambda: self.settings.server.max_uploads  # noqa: E731  as short as the others
        quota = lambda: self._rules.storage_quota  # noqa: E731
        self.inputs = Inputs(self.database, self.assets, pool, self.open_fetcher, most, self.clock, quota)
        folder = UploadFolder((self.assets.folder or self.settings.data) / "uploads")
        retention = lambda: self.settings.jobs.file_retention  # noqa: E731  as short as the others
        self._file_pool = pool
        self.uploads = ResumableUploads(folder, self.inputs, retention, self.clock)

    def _open_upkeep(self) -> None:
        is_steady = partial(attrgetter("is_steady"), self.contact)
        ages = lambda: RecordAges(**self.settings.records.model_dump())  # noqa: E731  as short as the others
        self.upkeep = Upkeep(
            self.database,
            self.assets,
            self.inputs,
            self.clock,
            self._recover,
            is_steady,
            self.steady,
            tidy=self.uploads.sweep,
            retention=RecordRetention(self.database, ages, self.clock),
            content_retention=lambda: self.settings.content_log.retention,
        )

    async def _open_assets(self) -> None:
        self.assets = await self.ports.open_assets(self.settings.assets_url, self.settings.data / "landing")
        self._resources.push_async_callback(asyncio.to_thread, self.assets.close)

    async def _join(self, run: Run) -> None:
        """Run the jobs, or stand by while another server does."""
        self._resources.push_async_callback(self._stop_standing_by)
        if self.leadership.is_held:
            await self._lead(run)
        else:
            self._succession = asyncio.create_task(self._stand_by(run), name="succession")

    async def _lead(self, run: Run) -> None:
        await self.dispatch.start(run)
        await self.delivery.start(alone=connect.is_file(self.settings.database_url))
        self.upkeep.sweeps = True

    async def _stand_by(self, run: Run) -> None:
        """Take over when the server that runs the jobs ends; until then, learn from what it does."""
        remember_at = self.steady() + REMEMBER_SECONDS
        while True:
            await asyncio.sleep(TAKE_OVER_SECONDS)
            try:
                if self.leadership.take():
                    await self._succeed(run)
                    log.info("the server that ran the jobs has ended; this one runs them now")
                    return
                if self.steady() >= remember_at:
                    await self._remember()
                    remember_at = self.steady() + REMEMBER_SECONDS
            except StoreUnavailable:
                log.warning("the store does not answer; standby continues")
            except Exception:
                log.exception("standby failed; it continues")

    async def _succeed(self, run: Run) -> None:
        """Run the jobs from now on. If the store fails here, leave them to a server for which it does not."""
        try:
            await self.dispatch.start(run)
        except BaseException:
            self.leadership.release()
            raise
        await self._lead(run)

    async def _stop_standing_by(self) -> None:
        self._succession.cancel()
        await asyncio.gather(self._succession, return_exceptions=True)

    async def _open_chat(self, exchange: Exchange) -> None:
        journals = self.ports.open_journals(self.settings.data / "journal")
        self.usage_writer = usage_writer = UsageWriter(self.database, self.admission.process, journals, self.clock)
        self._resources.push_async_callback(usage_writer.stop)
        await usage_writer.recover()
        self._chat_policy = _make_chat_policy(self.settings)
        self.relay = Relay(
            lambda: self.offers,
            exchange,
            usage_writer,
            self.admission,
            self.guardrails,
            self.content_log,
            lambda: self._chat_policy,
            self.clock,
            self.steady,
        )
        keep_policy = lambda: _make_keep_policy(self.settings)  # noqa: E731
        self.kept = KeptResponses(self.database, keep_policy, self.admission.process, self.clocks)
        self.keeper = ResponseKeeper(self.kept, self.body_memory, self.clock)
        self._resources.push_async_callback(self.kept.stop)

    async def settle_up(self, owners: Sequence[str] | None = None) -> None:
        """Write pending usage and return unused leases of these owners, so that reads are exact."""
        await self.usage_writer.flush()
        await self.admission.give_back(owners)

    async def _recover(self) -> None:
        await self.usage_writer.recover()

    async def _close_vendors(self) -> None:
        await _close_all([*self.offers.by_credential.values(), *self.offers.vendors.values()])
        for vendor in self.offers.chat_vendors.values():
            if vendor.server is not None:
                await asyncio.to_thread(vendor.server.close)

    async def _learn(self) -> None:
        await self._learning.begin(is_wanted=bool(schemas_wanted(self.settings)))

    def _knows_schemas(self) -> bool:
        return all(find_schema(self.settings.data, *each) for each in schemas_wanted(self.settings))

    async def _ask_for_schemas(self) -> None:
        wanted = schemas_wanted(self.settings)
        if await learn_schemas(self.exchange, self.offers.vendors, wanted, self.settings.data):
            self._use_prices()

    def _use_prices(self) -> None:
        """Build the offers again: with the prices of the store, and with the schemas that are known now."""
        self.offers = build_offers(self.settings, self.offers, self.clocks, self.prices.rows)

    def _watch_prices(self) -> None:
        metrics.UNPRICED_MODELS.set_function(lambda: count_unpriced(self.offers, self.clock()))
        for origin in ORIGINS:
            drift = partial(count_drift, origin=origin)
            metrics.PRICE_DRIFT.labels(origin).set_function(lambda count=drift: count(self.offers, self.clock()))

    async def _remember(self) -> None:
        found = await self.database.read(job_rows.recent_durations, list(self.offers.by_model), REMEMBERED)
        for model, durations in found.items():
            self.history.replace(model, durations)

    async def open_fetcher(self) -> "SafeFetcher":
        """Return the fetcher of the current settings; it is opened at first use, as it would slow down every start."""
        async with self._opening:
            if self._fetcher is not None:
                return self._fetcher
            fetcher = await self.ports.open_fetcher(self.settings.fetch.allow_networks, self.settings.fetch.seconds)
            self._fetcher = await self._resources.enter_async_context(fetcher)
            return fetcher

    async def check_webhook(self, url: str) -> str:
        """Return the normalised URL of a webhook; raise `UrlNotAllowed`."""
        return await (await self.open_fetcher()).check(url)

    def _body_bounds(self) -> Bounds:
        server = self.settings.server
        return make_bounds(server.max_bodies_mb, server.max_bodies_mb_per_account, self.max_body_mb)

    @property
    def stream_bounds(self) -> Bounds:
        """Return the bounds of open event streams; the last tenth is for accounts that have few."""
        server = self.settings.server
        most = server.max_streams
        return Bounds(most, server.max_streams_per_account, reserve=most // 10, little=max(1, most // 100))

    def scribe(self, base_url: str) -> RecordBuilder:
        """Return a record builder whose links use the operator's public URL, or else this one."""
        base_url = self.settings.server.public_url or base_url
        return RecordBuilder(
            base_url, self.clock(), self.settings.jobs.link_seconds, self.links.sign, self.dispatch.position
        )

    def _link_for_vendor(self, file: StoredFile) -> str | None:
        """Return a link from which a vendor can fetch an input file; None without a public URL."""
        public_url = self.settings.server.public_url
        if not public_url:
            return None
        path = f"assets/{file.token}/{file.name}" if file.key else f"files/{file.token}/content"
        expires = int(self.clock() + VENDOR_LINK_SECONDS)
        return f"{public_url}/api/v1/{path}?expires={expires}&signature={self.links.sign(file.token, expires)}"

    def _seats(self, vendor: str) -> int:
        found = self.offers.vendors.get(vendor)
        return 1 if found is None else found.options.max_concurrent

    def _is_sure(self, claim: Claim) -> bool:
        return self.dispatch.is_sure(claim)

    def _all_seats(self) -> dict[str, int]:
        return {name: vendor.options.max_concurrent for name, vendor in self.offers.vendors.items()}


async def _close_all(vendors: Iterable[GenerationVendor]) -> None:
    for vendor in vendors:
        if vendor.upstream is not None:
            await asyncio.to_thread(vendor.upstream.close)


def _make_guardrails(settings: Settings, offers: Offers) -> list[Guardrail]:
    models = {*offers.by_model, *offers.chat, *(entry.id for entry in settings.models)}
    return build_guardrails(settings.guardrails, models, settings.source)


def _make_rules(settings: Settings) -> JobPolicy:
    jobs = settings.jobs
    return JobPolicy(
        start_seconds=jobs.start_timeout,
        run_seconds=jobs.run_timeout,
        max_seconds=jobs.max_timeout,
        retention=jobs.retention,
        max_waiting=jobs.max_waiting,
        max_waiting_total=jobs.max_waiting_total,
        check_url=partial(check_url, allow_networks=settings.fetch.allow_networks),
        storage_quota=settings.storage_quota,
    )


def _make_chat_policy(settings: Settings) -> ChatPolicy:
    chat = settings.chat
    return ChatPolicy(chat.heartbeat_seconds, chat.cache_mb << 20, chat.cache_seconds)


def _make_keep_policy(settings: Settings) -> KeepPolicy:
    return KeepPolicy(settings.chat.response_retention, settings.chat.response_quota_mb << 20)


def _make_providers(settings: Settings) -> list[ProviderOptions]:
    return [
        ProviderOptions(
            name=name,
            title=table.title or name,
            issuer=table.issuer,
            client_id=table.client_id,
            client_secret=None if table.client_secret is None else table.client_secret.get_secret_value(),
            scopes=table.scopes,
            groups_claim=table.groups_claim,
            trust_email=table.trust_email,
            uses_userinfo=table.userinfo == "used",
            rules=tuple(rule.rule(table.groups_claim) for rule in table.rules),
        )
        for name, table in settings.sign_in.items()
    ]


def _hide_secrets(settings: Settings) -> None:
    password = urlsplit(settings.database_url).password
    for secret in (*settings.secrets, *([unquote(password)] if password else ())):
        logs.hide(secret)
