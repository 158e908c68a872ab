"""FolderStorage: decision and end of jobs in a folder, for JobMasters that are tested without a Dispatcher."""

import msgspec

from engine.commit.decision import decode_decision, encode_decision
from engine.commit.result_record import JobResultRecord
from engine.errors import FencedError


class FolderStorage:
    """A JobStorage; the first end that is recorded stays."""

    cluster = ""
    takes_time = True

    def __init__(self, folder, job_id):
        self._folder, self._job_id = folder, job_id

    def is_over(self, job_id):
        return False

    def ended(self):
        path = self._result()
        return msgspec.json.decode(path.read_bytes(), type=JobResultRecord) if path.exists() else None

    def decide(self, decision):
        if self.decision() is None:
            self._decision().parent.mkdir(parents=True, exist_ok=True)
            self._decision().write_bytes(encode_decision(decision))
        if self.decision().epoch > decision.epoch:
            raise FencedError(self.decision().epoch, decision.epoch)
        return self.decision()

    def decision(self):
        path = self._decision()
        return decode_decision(path.read_bytes(), str(path)) if path.exists() else None

    def record(self, end):
        path = self._result()
        path.parent.mkdir(parents=True, exist_ok=True)
        before = self.ended()
        if before is not None and before.epoch > end.record.epoch:
            raise FencedError(before.epoch, end.record.epoch)
        if before is None:
            path.write_bytes(msgspec.json.encode(end.record))
        self._decision().unlink(missing_ok=True)

    def _decision(self):
        return self._folder / "decisions" / f"{self._job_id}.json"

    def _result(self):
        return self._folder / "results" / f"{self._job_id}.json"
