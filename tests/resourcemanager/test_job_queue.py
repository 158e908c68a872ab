"""JobQueue: whose turn it is, at which place the others wait, and whom the cluster could never serve."""

from __future__ import annotations

import random

import msgspec

from engine.gateways.job_queue import JobTurn, WaitingReason, waiting_text
from engine.gateways.messages import RequestSlots
from engine.ids import JobId
from engine.resourcemanager.job_queue import JobQueue

A, B, C, D = (JobId(letter * 32) for letter in "abcd")


def request(job_id, count, *, order=0, priority=0, request_id=1):
    return RequestSlots(job_id, job_id.value[0], "jobmaster", request_id, count, turn=JobTurn(priority, order))


def queue(*requests, running_max=0):
    queued = JobQueue(running_max)
    for each in requests:
        queued.add(each)
    return queued


def served(queued, free, total):
    """Serve as far as it goes; return the jobs."""
    jobs = []
    while (each := queued.next_served(lambda _, free=free: free, total)) is not None:
        jobs.append(each.job_id)
        free -= each.count
    return jobs


def test_jobs_are_served_in_the_order_of_submission_whatever_order_they_ask_in():
    queued = queue(request(C, 1, order=3), request(A, 1, order=1), request(B, 1, order=2))
    assert served(queued, 3, 3) == [A, B, C]


def test_a_higher_priority_comes_first_and_the_earlier_one_among_equals():
    queued = queue(
        request(A, 1, order=1), request(B, 1, order=2, priority=5), request(C, 1, order=3, priority=5), request(D, 1)
    )
    assert served(queued, 4, 4) == [B, C, D, A]


def test_the_next_stage_of_an_earlier_job_comes_before_a_later_job():
    queued = queue(request(A, 2, order=1), request(B, 2, order=2))
    assert served(queued, 2, 2) == [A]
    queued.add(request(A, 2, order=1, request_id=2))
    assert served(queued, 2, 2) == [A]
    assert served(queued, 2, 2) == [B]


def test_a_large_request_is_not_starved_by_small_ones_behind_it():
    queued = queue(request(A, 4, order=1), request(B, 1, order=2), request(C, 1, order=3))
    assert served(queued, 3, 4) == []
    assert served(queued, 4, 4) == [A]


def test_what_is_larger_than_the_cluster_keeps_nobody_waiting_and_has_its_place_again_when_slots_come():
    queued = queue(request(A, 5, order=1), request(B, 1, order=2), request(C, 1, order=3))
    assert served(queued, 1, 4) == [B]
    assert served(queued, 1, 5) == [], "four more slots are to come free for the first one"
    assert served(queued, 5, 5) == [A]


def test_what_is_owed_comes_before_everybody():
    queued = queue(request(A, 1, order=1, priority=9))
    queued.owe(request(B, 3, order=2), 1)
    assert served(queued, 2, 4) == [B, A]


def test_no_more_jobs_run_than_are_allowed_and_those_that_run_get_their_further_slots():
    queued = queue(request(A, 1, order=1), request(B, 1, order=2), request(C, 1, order=3), running_max=2)
    assert served(queued, 9, 9) == [A, B]
    queued.add(request(B, 1, order=2, request_id=2))
    assert served(queued, 9, 9) == [B]
    assert queued.waiting(9, {A, B})[C].reason is WaitingReason.LIMIT
    queued.leave(A)
    assert served(queued, 9, 9) == [C]


def test_a_job_that_nobody_knows_any_more_takes_no_place_among_those_that_run():
    queued = queue(request(B, 1), running_max=1)
    queued.note_running(A)
    assert served(queued, 1, 1) == []
    queued.keep_running(lambda job_id: job_id != A)
    assert served(queued, 1, 1) == [B]


def test_nobody_overtakes_a_recovered_job_before_it_has_asked():
    queued = queue(request(B, 1, order=2), request(C, 1, order=0, priority=1))
    queued.expect({A: JobTurn(0, 1)})
    assert served(queued, 4, 4) == [C], "the higher priority has nothing to wait for"
    queued.add(request(A, 1, order=1))
    assert served(queued, 4, 4) == [A, B]


def test_what_is_owed_does_not_wait_for_recovered_jobs():
    queued = queue(request(C, 1, order=3))
    queued.owe(request(B, 2, order=2), 1)
    queued.expect({A: JobTurn(0, 1)})
    assert served(queued, 4, 4) == [B]


def test_recovered_jobs_that_hold_slots_have_ended_or_are_silent_keep_nobody_waiting():
    for end in (lambda it: it.note_running(A), lambda it: it.leave(A), lambda it: it.expect_nobody()):
        queued = queue(request(B, 1, order=2))
        queued.expect({A: JobTurn(0, 1)})
        assert served(queued, 1, 1) == []
        end(queued)
        assert served(queued, 1, 1) == [B]


def test_places_are_counted_among_jobs_that_hold_nothing_and_say_why():
    queued = queue(
        request(A, 2, order=1),
        request(B, 3, order=2),
        request(B, 1, order=2, request_id=2),
        request(C, 9, order=3),
        request(D, 1, order=4),
    )
    waiting = queued.waiting(4, {A})
    assert [(job, each.place, each.count) for job, each in waiting.items()] == [(B, 1, 3), (C, 2, 3), (D, 3, 3)]
    assert waiting_text(waiting[B]) == "place 1 of 3 in the queue: 3 slots needed, others have them or come first"
    assert waiting_text(waiting[C]) == "place 2 of 3 in the queue: 9 slots needed, the cluster has 4"


def test_short_is_who_could_not_be_served_by_all_slots_together():
    queued = queue(request(A, 5, order=1), request(B, 4, order=2), request(C, 9, order=3))
    assert queued.short(4) == {A, C}
    queued.add(request(C, 2, order=3, request_id=2))
    assert queued.short(4) == {A}, "one stage of it can run"
    queued.withdraw(A)
    assert queued.short(4) == frozenset() and queued.short(9) == frozenset()


def test_whoever_can_be_served_at_all_is_served_before_long():
    """Random jobs come and give back; each is served after at most those that were before it."""
    draw = random.Random(7)
    for _ in range(200):
        total = draw.randint(1, 6)
        sizes = [draw.randint(1, 8) for _ in range(12)]
        turns = [JobTurn(draw.randint(0, 2), order) for order in range(12)]
        jobs = [JobId(f"{number:032x}") for number in range(12)]
        queued = JobQueue()
        for number in draw.sample(range(12), 12):
            queued.add(RequestSlots(jobs[number], "", "", 1, sizes[number], turn=turns[number]))
        free, held, order = total, [], []
        while len(queued) or held:
            if (each := queued.next_served(lambda _, free=free: free, total)) is not None:
                free -= each.count
                held.append(each)
                order.append(each.job_id)
            elif held:
                free += held.pop(draw.randrange(len(held))).count
            else:
                break
        expected = [jobs[n] for n in sorted(range(12), key=lambda n: turns[n].key) if sizes[n] <= total]
        assert order == expected


def of_user(user, job_id, count, **more):
    each = request(job_id, count, **more)
    return msgspec.structs.replace(each, turn=msgspec.structs.replace(each.turn, user=user))


def test_a_user_with_as_many_jobs_as_users_may_have_waits_and_others_pass():
    queued = JobQueue(user_jobs_max=1)
    for each in (of_user("ada", A, 1, order=1), of_user("ada", B, 1, order=2), of_user("bob", C, 1, order=3)):
        queued.add(each)
    queued.add(request(D, 1, order=4))
    assert served(queued, 4, 4) == [A, C, D], "one that has no name has no limit"
    assert queued.waiting(4, {A, C, D})[B].reason is WaitingReason.USER
    assert "user.limit" in waiting_text(queued.waiting(4, {A, C, D})[B])
    queued.add(of_user("ada", A, 1, order=1, request_id=2))
    assert served(queued, 4, 4) == [A], "the next stage of a job that runs"
    queued.leave(A)
    assert served(queued, 4, 4) == [B]


def test_slots_of_all_jobs_of_a_user_count_together():
    held = {}
    queued = JobQueue(user_slots_max=3, held=lambda: held)
    queued.add(of_user("ada", A, 2, order=1))
    assert served(queued, 9, 9) == [A]
    held[A] = 2
    queued.add(of_user("ada", B, 2, order=2))
    queued.add(of_user("bob", C, 3, order=3))
    assert served(queued, 9, 9) == [C]
    held[A] = 1
    assert served(queued, 9, 9) == [B]
