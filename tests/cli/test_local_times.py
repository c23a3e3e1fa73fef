"""What people read has their own time; what programs read has UTC."""

import json
import re
import subprocess
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from support.service import PROGRAM, TOKEN, environment, serving

ZONE = "Pacific/Kiritimati"
"""14 hours before UTC: no time of the one can be taken for one of the other."""
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def test_pause_status_and_doctor_have_the_local_time(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN, env={"TZ": ZONE}) as service:

        def told(*words: str) -> str:
            # The C library reads the zone when a program starts.
            ran = subprocess.run(
                [*PROGRAM, *words], env=environment(service.home, TZ=ZONE), capture_output=True, text=True
            )
            return ran.stdout

        until = json.loads(told("pause", "--for", "1h", "--json"))["until"]
        here = datetime.fromisoformat(until).astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%d %H:%M:%S")
        assert here in told("doctor")
        shown = told("pause", "--for", "1h")
        found = TIME.search(shown)
        assert found is not None and found[0][:13] >= here[:13] and until[:13] not in shown
        since = json.loads(told("status", "--json"))["listeners"][0]["since"]
        begun = datetime.fromisoformat(since).astimezone(ZoneInfo(ZONE)).strftime("%Y-%m-%d %H:%M:%S")
        assert begun in told("status") and since not in told("status")
