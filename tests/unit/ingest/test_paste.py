"""Pasted output is refused; honest sentences about output are not."""

from __future__ import annotations

import pytest

from bethink.errors import LooksPasted
from bethink.ingest.content_checks import detect_paste, refuse_pasted
from bethink.model import Draft
from naughty import NAUGHTY
from rows import each_row

PASTED = [
    # Log lines
    "2023-05-08 12:00:01,123 ERROR [main] com.acme.Billing - Connection refused",
    "[2023-05-08T12:00:01Z] INFO server started on port 8080",
    "2023-05-08T12:00:01.123456Z  WARN billing::worker: retrying in 5s",
    "2023/05/08 12:00:01 [error] 1234#0: *5 upstream timed out",
    "12:00:01.123 DEBUG c.a.Service - entering method",
    "INFO:     2023-05-08 12:00:01 uvicorn running",
    "ERROR 2023-05-08 12:00:01 worker: job 17 died",
    "May  8 12:00:01 web1 sshd[1234]: Failed password for root",
    '127.0.0.1 - - [08/May/2023:12:00:01 +0000] "GET / HTTP/1.1" 200 512',
    "E0508 12:00:01.123456 1 controller.go:42] sync failed",
    'ts=2023-05-08T12:00:01Z level=info msg="compacted block"',
    '{"level":"error","ts":1683547201,"msg":"dial tcp: refused"}',
    'level=error component=api msg="boom"',
    "12:00:01.001 start\n12:00:01.002 middle\n12:00:01.003 end",
    "[INFO] Scanning for projects\n[INFO] Building billing 1.0\n[INFO] Tests are skipped",
    "ERROR: relation does not exist\nERROR: current transaction is aborted\nERROR: rolled back",
    # Stack traces
    'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\n    main()\nKeyError: 1',
    'It said:\nTraceback (most recent call last):\n  File "/srv/app.py", line 10, in run\nValueError: x',
    "TypeError: x is undefined\n    at foo (/srv/app.js:10:5)\n    at bar (/srv/app.js:20:7)",
    "Error: boom\n    at Object.<anonymous> (index.js:1:7)\n    at Module._compile (node:internal:1:2)",
    "java.lang.NullPointerException\n\tat com.acme.Foo.bar(Foo.java:42)\n\tat com.acme.Main.main(Main.java:7)",
    'Exception in thread "main" java.lang.IllegalStateException: x\n\tat com.acme.Foo.bar(Foo.java:42)',
    "goroutine 1 [running]:\nmain.main()\n\t/srv/main.go:12 +0x1d\nexit status 2",
    "System.Exception: x\n   at Acme.Foo.Bar() in /src/Foo.cs:line 12\n   at Acme.Main() in /src/M.cs:line 3",
    "NoMethodError: undefined\n  from app/models/user.rb:12:in 'save'\n  from app/main.rb:3:in 'run'",
    "#0 0x00007f in raise ()\n#1 0x00007e in abort ()",
    # Builds and tests
    "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! Exit status 1",
    "##[group]Run tests\n##[error]Process completed with exit code 1.",
    "collected 12 items\n\n======= 10 passed, 2 failed in 3.21s =======",
    "FAILED tests/test_a.py::test_b - assert 1 == 2\nFAILED tests/test_a.py::test_c - KeyError",
    "=== RUN   TestFoo\n--- FAIL: TestFoo (0.00s)\nFAIL",
    "> Task :compileJava\n> Task :test FAILED\nBUILD FAILED in 3s",
    "Step 1/5 : FROM python:3.11\n ---> 0123456789ab\nStep 2/5 : COPY . .",
    "Collecting requests\nDownloading requests-2.31.0-py3-none-any.whl\nInstalling collected...",
    "make[1]: *** [Makefile:10: all] Error 2\nmake: *** [Makefile:3: sub] Error 2",
    "Attempt #1 failed: timeout\nAttempt #2 failed: timeout",
    "Test Suites: 1 failed, 3 passed\nTests:       2 failed, 40 passed",
    " 45%|████▌     | 45/100\n 46%|████▌     | 46/100",
    # Assistants
    "As an AI language model, I cannot access your files.",
    "I'm sorry, but I can't help with that request.",
    "Certainly! Here's a summary of the changes I made to the billing module.",
    "Sure! Here is the updated function:\n\ndef f(): ...",
    "Great question! Let me explain how the cache works in detail.",
    "I'd be happy to help you with the deployment!",
    "You are a helpful assistant that answers in JSON.",
    "You are an expert coding assistant. Follow the rules below.",
    "I've updated the config and all the tests. Let me know if you want more changes.",
    "Here's a breakdown of the options:\n1. Redis\n2. Postgres",
    "⏺ Bash(make test)\n  ⎿  All tests passed",
    "● Update(src/app.py)",
    # Drawings and terminals
    "┌─────┬─────┐\n│ a   │ b   │\n├─────┼─────┤\n│ 1   │ 2   │\n└─────┴─────┘",
    "├── src\n│   ├── a.py\n│   └── b.py\n└── tests",
    "\x1b[31mERROR\x1b[0m something failed",
]
HONEST = [
    "Logs are shipped to Loki and kept 30 days",
    "Build the release with make; logs go to S3",
    "Error: budget alerts must go to finance, not to the team",
    "Errors in checkout fell below one in a thousand",
    "Success means fewer than five open incidents a month",
    "Deployment happens on Tuesdays at ten",
    "Failed logins lock an account after five tries",
    "Service offline alerts page the on-call engineer",
    "Log in with the break-glass account only during an incident",
    "Build number 412 is the last one signed with the old key",
    "The log level in production is WARN, in staging DEBUG",
    "ERROR lines in the nightly export are harmless before 02:00",
    "INFO is the right level for request lines",
    "A Traceback (most recent call last) in the worker log means the queue was restarted",
    "The stack trace ends at billing.py line 42, where the tenant is missing",
    "Stack traces are sent to Sentry with the release version",
    "npm ERR! ERESOLVE goes away with --legacy-peer-deps",
    "If pytest says 'collected 0 items', the folder lacks a test_ prefix",
    "CI fails with 'exit code 137' when the runner is out of memory",
    "make: *** No rule to make target means the submodule is missing",
    "Attempt #3 failed because of DNS; the fix was a longer TTL",
    "Welcome to the jungle is Ana's favourite song",
    "Welcome mails are sent by the onboarding service",
    "Hey there, is what the bot says first",
    "Dear customers is how legal wants every letter to begin",
    "You are a member of the Acme account since 2021",
    "You are the owner of the billing service",
    "You are an early adopter if you joined before March",
    "Add members in the admin console, not by SQL",
    "Enable 2FA for all contractors before they get access",
    "Disable users after 90 days without login",
    "Configure the organization's SSO in Okta",
    "Rule 3: never push to main on a Friday",
    "Standup moved from 10:00 to 10:30",
    "The backup runs at 02:15:00 every night",
    "Outage on 2023-05-08 from 12:00:01 to 12:14:59, cause: expired certificate",
    "2023-05-08: decided to drop Python 3.10",
    "2023-05-08 12:00:01 was the moment the cache was flushed",
    "On 2023-05-08 the error rate doubled; see the INFO lines of the gateway",
    "[2023-05-08] Maria joined the platform team",
    "The API answers with level=error in the body when the quota is used up",
    "Certainly the best ramen in town is near the canal",
    "Of course the key is rotated every quarter",
    "Sure enough, the flaky test was a shared temp folder",
    "Absolutely never store card numbers",
    "Here's the rule: two reviewers for anything that touches money",
    "Here is how to restore a backup: stop the app, copy the file, start the app",
    "I've added Priya to the on-call rotation",
    "I have updated the diagram in the wiki",
    "Let me know is Tom's way of saying no",
    "As an engineer Maria prefers short pull requests",
    "I'm sorry but I can never remember the vault path: it is kv/billing/prod",
    "I would be happy with any database that has row-level security",
    "● Deploy on Tuesdays",
    "The arrow → in the diagram means an async call",
    "█ is the progress glyph of the exporter",
    "The table uses ┌ and ┐ as corners",
    "Step 1: stop the app. Step 2: copy the file. Step 3: start the app",
    "Downloading the model takes ten minutes on the office network",
    "Installing from the lock file is required in CI",
    "Run actions/checkout before the cache step",
    "Check the log:\n- first the gateway\n- then the worker\n- then the database",
    "First line of a note\nSecond line of a note\nThird line at 10:00",
    "at 10:00 we start\nat 11:00 we stop\nat 12:00 we eat",
    "The function at the end of app.js:10 is dead code\nand the one at the top too",
    "Tests: run with make test; needs Docker and eleven minutes",
    "Exit status 2 of the exporter means the bucket is full",
    "def f(x): return x + 1 is the whole plugin",
    "Use `logger.info` rather than print; INFO: is added by the formatter",
    "Goroutine leaks in the sync worker were fixed in v2.3.1",
]


@each_row("text", PASTED)
def test_machine_output_is_refused(text):
    """The sign that was seen is named, and so is the way out."""
    with pytest.raises(LooksPasted) as caught:
        refuse_pasted(Draft(text))

    assert detect_paste(text) in caught.value.message
    assert "--force" in caught.value.remedy


@each_row("text", HONEST)
def test_honest_sentences_pass(text):
    """A word alone is never a sign."""
    assert detect_paste(text) is None


@pytest.mark.parametrize(
    "draft",
    [
        Draft(PASTED[0], force=True),
        Draft(PASTED[0], level="raw"),
        Draft("Sure! Here's the photo from the lake.", session="chat-1", speaker="Ana"),
    ],
)
def test_episodes_turns_and_the_forced_are_kept_as_they_are(draft):
    """What is kept word for word may be anything."""
    refuse_pasted(draft)


def test_the_table_is_long_enough():
    """A check with few examples proves little."""
    assert len(PASTED) >= 40
    assert len(HONEST) >= 60


def test_any_text_can_be_looked_at():
    """No text breaks the check."""
    for text in NAUGHTY:
        detect_paste(text)


TOOL_OUTPUT = {
    "kubectl": """NAME                     READY   STATUS    RESTARTS   AGE
web-6d4b75cb6d-hqbxk     1/1     Running   0          5d
worker-7f9c8d5b4-zk2lp   0/1     Error     12         2h""",
    "docker": """CONTAINER ID   IMAGE     COMMAND      STATUS
1f2e3d4c5b6a   redis:7   "redis"      Up 2 hours
9a8b7c6d5e4f   nginx     "/entry.sh"  Up 3 hours""",
    "git diff": """diff --git a/src/app.py b/src/app.py
index 83db48f..bf2a9c1 100644
--- a/src/app.py
+++ b/src/app.py
@@ -1,4 +1,4 @@
-print("a")
+print("b")""",
    "tsc": """src/search.ts(12,5): error TS2304: Cannot find name 'foo'.
src/index.ts(3,1): error TS2322: Type 'string' is not assignable to type 'number'.""",
    "tsc pretty": """src/search.ts:12:5 - error TS2304: Cannot find name 'foo'.

12     foo();
       ~~~

Found 1 error in src/search.ts:12
src/a.ts:1:1 - error TS1005: ';' expected.""",
    "cargo": """error[E0382]: borrow of moved value: `s`
 --> src/main.rs:4:20
  |
2 |     let s = String::from("a");
  |         - move occurs here
error: could not compile `app` (bin "app") due to 1 previous error""",
    "cargo build": """   Compiling serde v1.0.203
   Compiling app v0.1.0 (/home/me/app)
    Finished `dev` profile [unoptimized + debuginfo] target(s) in 3.21s""",
    "make": """make[1]: Entering directory '/home/me/app'
gcc -O2 -Wall -c main.c -o main.o
gcc -o app main.o util.o
make[1]: Leaving directory '/home/me/app'""",
    "gcc": """main.c:12:5: error: 'x' undeclared (first use in this function)
main.c:12:5: note: each undeclared identifier is reported only once""",
    "terraform": """Terraform will perform the following actions:

  # aws_instance.web will be created
  + resource "aws_instance" "web" {
      + ami = "ami-0c55b159cbfafe1f0"
    }

Plan: 1 to add, 0 to change, 0 to destroy.""",
    "git log": """commit 8f14e45fceea167a5a36dedd4bea2543 (HEAD -> main)
Author: Ada <ada@example.org>
Date:   Mon Mar 2 10:00:00 2026 +0100

    Fix the gate""",
    "ls": """total 12
-rw-r--r-- 1 ada staff 120 Mar  2 10:00 a.txt
drwxr-xr-x 2 ada staff  64 Mar  2 10:01 src""",
    "psql": """ id | name
----+------
  1 | crane
(1 row)""",
    "ping": """PING host (10.0.0.1) 56(84) bytes of data.
64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.4 ms""",
}
HONEST_NOTES = [
    "The kubectl table showed web-6d4b in Error with 12 restarts; it was out of memory",
    "tsc fails with TS2304 in src/search.ts because the types package is missing",
    "git diff a/src b/src shows only whitespace: the formatter ran twice",
    "Plan: add three servers, change one, destroy none; Ines approved it",
    "Ports:\n- web: 8080\n- worker: 9090",
    "| name | port |\n| web | 8080 |\n| worker | 9090 |",
    "ALPHA  BETA  GAMMA are the names of the three racks",
    "make test runs the tests\nmake lint runs the linter",
    "error: the word the parser prints first\nwarning: the word it prints for the rest",
    "Use gcc -O2 for releases and -O0 for debugging",
    "Author: Ines\nThe report is due on Friday",
    "total 12 seats in the hall\nping the caterer on Monday",
    "We chose terraform over pulumi\nApply needs two approvals",
]


@each_row("tool", TOOL_OUTPUT)
def test_the_output_of_tools_is_no_memory(tool: str) -> None:
    """Tables, diffs, diagnostics and plans are told by their shape."""
    assert detect_paste(TOOL_OUTPUT[tool]) is not None


@each_row("text", HONEST_NOTES)
def test_notes_about_tools_are_memories(text: str) -> None:
    """What a person writes about the same tools is kept."""
    assert detect_paste(text) is None
