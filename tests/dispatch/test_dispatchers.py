"""What every dispatcher keeps to, through its port: each job is run once, seats are kept, accounts have their turns."""

import time

from crew import Crew, Worker, loop_time, rerouted, until

from penstock.store.queries.jobs import job_rows, worker_rows


async def test_every_accepted_job_is_run_once(crew: Crew):
    before = await crew.accept("acct_one", 20)
    await crew.vendor.finish_all()
    await crew.hire(number=3)
    after = [job for account in ("acct_one", "acct_two") for job in await crew.accept(account, 5)]
    await crew.all_done()
    assert dict(crew.vendor.orders) == {job.id: 1 for job in (*before, *after)}


async def test_a_new_job_is_taken_up_at_once(crew: Crew):
    await crew.hire(number=2)
    for _ in range(3):
        (job,) = await crew.accept()
        begun = loop_time()
        await until(lambda job=job: job.id in crew.vendor.orders)
        assert loop_time() - begun < 30


async def test_unfinished_jobs_are_resumed_after_a_restart(crew: Crew):
    (first,) = await crew.hire(seats=5)
    accepted = await crew.accept(number=8)
    await until(lambda: crew.vendor.running == 5)
    await first.stop()
    await crew.hire(seats=5)
    await crew.vendor.finish_all()
    await crew.all_done()
    assert dict(crew.vendor.orders) == {job.id: 1 for job in accepted}


async def test_a_worker_that_stops_gives_all_back_at_once(crew: Crew):
    (first,) = await crew.hire(seats=30)
    await crew.accept(number=30)
    await until(lambda: crew.vendor.running == 30)
    await first.stop()
    assert not first.held
    assert await crew.owned() == 0
    (second,) = await crew.hire(seats=30)
    await until(lambda: len(second.held) == 30)
    assert max(crew.vendor.orders.values()) == 1


async def test_a_vendor_never_has_more_orders_than_seats(crew: Crew):
    """Nor when one of those who work on them dies: its orders keep their seats, and others go on with them."""
    workers = await crew.hire(seats=10, number=3)
    accepted = await crew.accept("acct_one", 12) + await crew.accept("acct_two", 13)
    await until(lambda: crew.vendor.running == 10)
    if len(workers) > 1:
        dead = max(workers, key=lambda worker: len(worker.held))
        await dead.kill()
    for number in (15, 20, 25):
        await crew.vendor.finish(*sorted(crew.vendor.orders.keys() - crew.vendor.finished)[:5])
        await until(lambda number=number: len(crew.vendor.orders) == number)
        assert await crew.seated() <= 10 or crew.kind == "local"
    await crew.vendor.finish_all()
    await crew.all_done()
    assert crew.vendor.peak == 10
    assert dict(crew.vendor.orders) == {job.id: 1 for job in accepted}


async def test_no_account_waits_for_anothers_backlog(crew: Crew):
    hired = await crew.hire(seats=5, number=2)
    await crew.accept("acct_big", 300)
    await until(lambda: crew.vendor.running == 5)
    before = len(crew.vendor.log)
    (small,) = await crew.accept("acct_small", 1)
    await until(lambda: all(worker.dispatch.position(small.id) is not None for worker in hired))
    await crew.vendor.finish(*crew.vendor.orders)
    await until(lambda: "acct_small" in crew.vendor.log)
    assert crew.vendor.log.index("acct_small") - before < 5


async def test_a_job_handed_to_another_vendor_frees_its_seat_and_waits_for_one_there(crew: Crew):
    hired = await crew.hire(seats=1, number=2)
    (there,) = await crew.accept(vendor="other")
    await until(lambda: there.id in crew.vendors["other"].orders)
    (handed,) = await crew.accept()
    await until(lambda: handed.id in crew.vendor.orders)
    (waiting,) = await crew.accept()
    holder = next(worker for worker in hired if handed.id in worker.held)
    await hand_on(holder, handed.id)
    await until(lambda: waiting.id in crew.vendor.orders)
    assert handed.id not in crew.vendors["other"].orders
    await crew.vendors["other"].finish(there.id)
    await until(lambda: handed.id in crew.vendors["other"].orders)
    assert crew.vendors["other"].peak == 1


async def hand_on(worker: Worker, job_id: str) -> None:
    claim = worker.claims[job_id]
    await worker.database.write(job_rows.hand_on, claim, lambda job: rerouted(job, "other"), time.time())
    worker.running[job_id].cancel()


async def test_sure_is_only_who_works(crew: Crew):
    hired = await crew.hire(number=2)
    await until(lambda: all(worker.dispatch.is_sure() for worker in hired))
    if crew.kind != "local":
        await hired[0].kill()
        await until(lambda: not hired[0].dispatch.is_sure())
        await until(hired[1].dispatch.is_sure)


async def test_what_was_claimed_under_a_lost_lease_is_never_sure_again(crew: Crew):
    """A frozen worker wakes up, loses its lease and has a new one at once: an order begun before must not go out."""
    (worker,) = await crew.hire(number=1)
    (job,) = await crew.accept()
    await until(lambda: job.id in worker.claims)
    claim = worker.claims[job.id]
    if crew.kind != "local":
        await worker.database.write(worker_rows.leave, claim.owner)  # as whoever takes over its jobs does
        await until(lambda: job.id in worker.claims and worker.claims[job.id].owner != claim.owner)
        await until(lambda: worker.dispatch.is_sure(worker.claims[job.id]))
        assert not worker.dispatch.is_sure(claim)
