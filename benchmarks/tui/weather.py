"""GPUs that are at work: the stand-in driver's answers change once a second."""

from __future__ import annotations

import random
import threading

from tests.fake_nvml import FakeDriver

_EVERY_SECONDS = 1.0


class Weather:
    """Changes what ``driver`` answers, the same way in every run of the benchmark."""

    def __init__(self, driver: FakeDriver, gpus: int) -> None:
        self._driver = driver
        self._gpus = gpus
        self._dice = random.Random(6)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for gpu in range(self._gpus):
                busy = self._dice.randint(55, 99)
                self._driver.set(
                    gpu=gpu,
                    utilization=busy,
                    memory_busy=busy // 2,
                    memory_used=(12 * 2**30) + self._dice.randrange(2**30),
                    power=200_000 + 4_500 * busy,
                    power_instant=200_000 + 4_500 * busy,
                    temperature=40 + busy // 4,
                    clock_sm=1980 - 2 * busy,
                )

    def close(self) -> None:
        self._over.set()
        self._thread.join()
