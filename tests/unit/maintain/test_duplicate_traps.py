"""Texts that look alike and do not say the same: the job on duplicates leaves them all."""

from __future__ import annotations

from bethink import Memory
from bethink.maintain.cleanup import comparable_words, is_same_wording
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

TRAPS = """\
I owe you 50 euros for the dinner in Rome | You owe me 50 euros for the dinner in Rome
My sister is allergic to penicillin and walnuts | Your sister is allergic to penicillin and walnuts
The contract with Globex ends in May | The contract with Globex ends in May was wrong
Ana says the gateway is reliable | Ana says the gateway is hardly reliable
Deploy the billing service to staging | Stop: Deploy the billing service to staging
We shipped release 2.4 to the customers | We almost shipped release 2.4 to the customers
It is true that the audit found five issues | It is false it is true that the audit found five issues
We pay you monthly for the support | You pay us monthly for the support
Our servers stand in Frankfurt | Your servers stand in Frankfurt
This server is to be rebooted | That server is to be rebooted
I told you about the leak | You told me about the leak
Ben takes the pill every morning | Ben takes the pills every morning
Ana has few doubts about the plan | Ana has a few doubts about the plan
There is little hope for the merger | There is a little hope for the merger
Plan costs 900 euros a month | Plan A costs 900 euros a month
Ana takes vitamin B and vitamin D | Ana takes vitamin B and a vitamin D and A
Ana is in charge of Ben at the clinic | Ana is in the charge of Ben at the clinic
The offer is out of question for us | The offer is out of the question for us
The minister is in office until May | The minister is in the office until May
Acme is a supplier of Globex | Acme is the supplier of Globex
Ben is a director of the company | Ben is the director of the company
Ask IT to sign the form | Ask it to sign the form
Send the form to US first | Send the form to us first
The Hague office is closed | Hague office is closed, The
We heard The Who in London | We heard who in London
Ana approved the budget | Ana reportedly approved the budget
Ana approved the budget | Ben denies Ana approved the budget
Ana approved the budget | Ana approved the budget, or so Ben claims
Ana approved the budget | Ana approved the budget in a dream
Ana approved the budget | Ana approved half the budget
Ana approved the budget | Ana approved the budget?
The build is green on main | The build is green on main again
The build is green on main | The build is green on main except on Windows
The build is green on main | Is the build green on main
The build is green on main | The build is barely green on main
Close the valve at noon | Never close the valve at noon
Close the valve at noon | Close the valve at noon tomorrow
Close the valve at noon | Close no valve at noon
Close the valve at noon | Close the valve before noon
The room costs 100 euros | The room costs -100 euros
The dose is 10 mg | The dose is 10 mg twice
The dose is 10 mg | The dose is 10 mg less
The dose is 10 mg | The dose is 10.0 mg
The script runs on C | The script runs on C++
Ana and Ben married | Ana or Ben married
Ana, Ben and Cleo signed | Ana, Ben, Cleo and Dan signed
Only Ana knows the code | Ana knows only the code
Ana hired Ben | Ben hired Ana
Everyone signed the waiver | Nearly everyone signed the waiver
The bridge is safe | The bridge is safe, they thought
The bridge is safe | The bridge is fail safe
The bridge is safe | The bridge was safe
The bridge is safe | The bridge is safe for cyclists
The lease has ended | The lease has not ended
The lease has ended | The lease hasn't ended
I can come on Friday | I can't come on Friday
We will sell the house | We would sell the house
We will sell the house | We will sell the house if prices rise
Call mum on Sunday | Call off mum on Sunday
The cat is in the garden | Hello cat is in the garden
Ana won the most votes | Ana won most votes
Two servers are down in Rome | The two servers are down in Rome
Paul was with child | Paul was with a child
Rome beat Paris in the final | Rome beat the Paris women in the final
No, the invoice is paid | The invoice is paid
The invoice is paid | Joke: the invoice is paid
The invoice is paid | Wrong, the invoice is paid
Peter said the key is lost | Peter said so the key is lost
My car is red | My old car is red
He lent her the bike | She lent him the bike
""".splitlines()
SAME = """\
The deploy keys of the north station are in vault B | the deploy keys of north station are in the vault B
Ana keeps a spare key of the cellar under the mat | Ana keeps a spare key of the cellar under mat.
The backup of the ledger runs at four every night | the backup of ledger runs at four every night!
We chose "PostgreSQL" for the billing ledger | We chose PostgreSQL for billing ledger
The night shift ends with a walk through the cold store | So, the night shift ends with a walk through the cold store
""".splitlines()


def _pair(line: str) -> tuple[str, str]:
    old, new = line.split(" | ")
    return old, new


@each_row("line", TRAPS)
def test_another_meaning_is_another_text(line: str) -> None:
    """Neither text is taken for the other, whichever of the two is the newer."""
    old, new = map(comparable_words, _pair(line))

    assert not is_same_wording(new, old)
    assert not is_same_wording(old, new)


def test_the_job_drops_none_of_them(embedder: Embedder) -> None:
    """All in one space, the usual job finds nothing to do."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        for position in (0, 1):
            for line in TRAPS:
                memory.remember(_pair(line)[position])
            clock.forward(hours=1)
        before = {item.id: item.status for item in memory.browse(limit=500)}

        assert memory.maintain("duplicates", share=1.0).done == ()
        assert {item.id: item.status for item in memory.browse(limit=500)} == before


def test_what_says_the_same_is_still_found(embedder: Embedder) -> None:
    """Case, punctuation, articles and a greeting make no other memory."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        old = [memory.remember(_pair(line)[0]).id for line in SAME]
        clock.forward(hours=1)
        new = [memory.remember(_pair(line)[1]).id for line in SAME]

        memory.maintain("duplicates", share=1.0)

        assert [memory.get(one).status for one in old] == ["superseded"] * len(SAME)
        assert [memory.get(one).status for one in new] == ["active"] * len(SAME)
