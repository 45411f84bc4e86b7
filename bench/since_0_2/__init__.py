"""What changed since version 0.2: the same answers (./dev compare 0.2) at the same speed (./dev bench --against 0.2).

For the redesign that leads to 0.3. This folder and bench/journeys.py leave with the release after 0.3. Both versions
run in processes of their own (worker.py), in environments of their own (environment.py). What is asked of them is plain
data that knows neither version: questions.py; calls_0_2.py and calls_now.py translate it into calls of each.
calls_0_2.py never changes; calls_now.py changes with the interface.
"""
