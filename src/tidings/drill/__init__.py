"""Crash drill: kills workers under load on a scratch database and finds lost or duplicate messages.

checker: compares the logs of producer, receiver and fault injector with the engine's records. Pure.
engine_records: reads the engine's own records of the messages.
harness: starts, kills and ends the processes of a drill.
json_log: append-only JSON logs that survive a kill.
parent_watch: ends a process when the drill ends.
producer: the process that accepts messages and logs what was acknowledged.
receiver: the HTTP receiver that logs every copy before it answers.
report: the figures of a drill.
runner: runs a drill from the first process to the report.
scratch: the folder and database of a drill, and the removal of leftovers.
worker: a worker process.
workload: which messages to send and which processes to kill, and when. Pure.
"""
