"""What docs/reproduction.md says in words: written by hand, beside what `make book` computes."""

from weightdecay.studies.verdicts import AS_GOOD, BETWEEN

_MARGIN = f"{100 * (AS_GOOD - 1):.0f} %"
PREFACE = """# The paper's claims, and what was measured

`make book` makes every number and picture on this page from the records in
[`results/`](../results/README.md), and a test checks that they agree. CIFAR-10 is the paper's data,
with a small conv net ([how it was trained](../results/cifar10-small/README.md)); mnist1d and text
are small enough for two cores. [The paper, line by line](paper.md) lists all claims of the paper,
with those that nothing judges yet.
"""
TRAINED = """\
All figures of mnist1d and text were trained at the scale `medium` from 18 to 20 November 2026: six
seeds choose, on finer grids than those of `small`. Text was trained on one H200 with torch 2.11,
but for 360 runs that made the grids of Figure 4 equal, on two cores with torch 2.13. Of mnist1d,
Figures 1 and 2 and the conjecture were trained on 11 cores with torch 2.11, the rest on two cores
with torch 2.13. Supplements 4 and 6 repeat Figures 3 and 4 on a second data set: text's own figures
are those.
"""
GLANCE = """\
A dash means that nothing was trained to judge the claim there, or that it compares two tasks and
is judged under the other one; it is not counted. A claim that two figures judge by the same runs is
listed once.
"""
ELSEWHERE = """\
Two parts of CIFAR-10 have designs of their own, and pages of their own:
[how the best decay moves with epochs, examples and batch size](../results/cifar10-small/budgets.md)
and [the headline](../results/cifar10-headline/README.md), AdamW against Adam with Shake-Shake over
100 epochs. [What we know that the paper did not](carrying.md) sums up which rules carry a decay.
"""
COST = """\
## What a decided claim costs

Earlier states are named by their commits. In the first ones, of 15 November 2026, 36 of 52
verdicts were *not decided*. Minutes are known where the log of a sweep is kept, or where its table
says them (`weightdecay export --seconds`). Those of mnist1d's third row, 38 in all, were noted
when it was trained; those of the other earlier states were not kept. The cores of mnist1d were busy
with other work as well, and the minutes of text are those of processes of which several shared one
GPU, on the whole page. Six seeds in place of two decided 11 more claims, overturned none, and left
one open that had been held. They cost more runs per decided claim, because the claims that two
seeds could decide were the cheap ones. On 18 November 2026, `make reproduce` trained Figure 2 of
mnist1d, with two seeds, in 4.3 minutes of one core: 980 runs, by which 8 of its 14 claims are
decided, in 0.5 minutes each. The whole command took 2 min 29 s on two cores that day. On three
other machines of 19 November, also with two cores, it took 3 min 2 s (5.6 minutes of one core),
1 min 51 s (3.4 minutes) and 2 min 5 s (3.9 minutes).
"""
READING = f"""\
## How to read it

Each claim is *held*, *not held* or *not decided*. These verdicts are rules about 95 % intervals,
and the last column of each table states the rule. Settings are chosen by validation error. Best
errors are compared on seeds that did not choose the settings, so differences need not equal those
in the pictures. Differences within {_MARGIN} of the rival's error count as ties: that is what
"rivals" and "gains nothing" mean.

What is not decided states two numbers. One is the smallest effect that data like these would detect
in 80 % of repeats. The other says how many seeds would decide the claim in 80 % of cases if what
was measured is the truth, and if noise falls with the root of the number of seeds; their runs stand
beside it, and their time where it was kept. For s and for budgets that number is too low: their
intervals hold what two estimators differ by, which does not shrink with more seeds. Where more than
1,000 seeds would be needed, the number lies so near the bound of its rule that the claim is open
for good.

A claim of several parts is held if all of them are, unless its rule says otherwise. If all seem to
be, the number of seeds is the one with which all would be shown in 80 % of cases, and the part that
takes most runs is named. If a part seems not to hold, it can decide the claim alone, by an interval
of 1 − 0.05/k for k parts; of several such parts, the one that takes fewest runs is named.
CIFAR-10's first claim in Figure 1, say, has a part for each of three schedules. At a fixed rate
AdamW measured 0.7 % worse than Adam, so that part alone would make the claim *not held*, once the
whole of its interval of 1 − 0.05/3 lies above 0.

s is the coupling exponent: it says how the best decay moves with the learning rate, λ* ∝ α⁻ˢ
([how it is measured](exponents.md)). With s = 0 the two knobs are separate, and with s = 1 the
low errors lie on a diagonal. A basin is diagonal if all of the interval lies above {BETWEEN:g}.
Where s below or above the best α is a dash, too few best decays were found on that side:
whether the ridge has a knee is unknown there, and s is mainly that of the other side.

Transfer regret says the same in test error: what it costs to tune λ at one learning rate and carry
it to another, a factor of 4 away, by a rule λ ∝ α⁻ˢ ([how it is
measured](landscape.md#transfer-regret)), on average and for each pair of learning rates. Fresh
seeds have judged it in Figures 1 and 2 and the conjecture. Elsewhere, each seed judges the decays
that the others choose. Methods are compared over the pairs that both have. Its intervals are over
seeds alone, for the test set at hand: unlike those of differences between methods, they have no
part for the sampling of that set. "By s" marks a rule that s points to and no fresh seed judged,
where all rules that were judged cost something.

So a cost may stand in several tables with different numbers. On mnist1d, keeping λ costs AdamW 2.12
points in Figure 2, 3.7 in Supplement 3 and 8.1 in Supplement 2. The first is the one to use: fresh
seeds trained the decays that it carries. The others are read between the decays of a grid, in
Supplement 2 one of only 16 settings. Beside a cliff, a cost changes much with the λ that is
carried, and other decays are best on another grid. The intervals do not count that.

How the best decay moves with the epochs is measured twice: Supplement 3 pools landscapes over raw
and over normalized decays, and the exponents use the latter alone, so the two may differ.
"""
REGISTERED = """\
Under each figure stands what was registered before its second stage, and what differs from that.
The errors of the seeds that judge have a median, too: where it lies far below the mean, as with SGD
and SGDW on text, a few seeds fail at the chosen setting, and most of a difference is theirs.
`registered.toml` in the figure's folder states settings, seeds, comparisons and rules ([which
ones](comparing.md#what-is-registered)). How a claim joins several comparisons is not among them,
nor are the rules about s, curves and separability, which need no second stage. Rules are compared
by their words.

On CIFAR-10, registrations were committed before the runs that they name. So were those of text's
Figures 3 and 4, Supplements 2 and 5 and conjecture, and of mnist1d's Figure 4 and Supplements 2 and
5. (Text's runs name the commit before that one, so their order rests on our word.) When the grids
of text's Figure 4 had been made equal, its settings were registered again. They are the same, so
nothing was trained to judge them again. All others were written by `weightdecay reproduce` before
it trained the second stage, but they entered git in the same commits as its runs: their dates are
the program's word, and git cannot prove them. The runs that had chosen the settings of mnist1d's
Figure 4 and Supplements 2 and 5 were lost with the machine that had trained them. Most of them were
trained again, and rounded differently ([which ones](../results/README.md)), so the pages say what
they would choose now. The settings that are judged are those that were registered.

Seeds 1000 to 1023 judge at every scale. On mnist1d and text they judged the scale `small` first, at
settings that two other seeds had chosen, and rules changed in between (below). They have chosen
nothing, but what they say of `medium` is not quite new: the settings are often nearly the same.
"""
CHANGED = f"""\
## What changed after records were seen

The rules were not all fixed beforehand. Earlier runs and verdicts are in commits 2fe7cf2, 66f5d20
and 3d8080c.

- **Before 18 November 2026:** some rules were made stricter, always towards *not decided*, which
  changed three verdicts on the same data. A difference that had no interval was given one, which
  decided one claim.
- **Fresh seeds, 18 November:** the test set's sampling error is no longer multiplied by Student's t
  of the seeds, so intervals became narrower. No verdict changed.
- **The two estimators of s, 18 November:** what they differ by between the decays of a grid is
  counted in the interval of their difference, so s is withheld less often. No verdict changed.
  For some hours it was counted in the interval of knees as well, which hid those of AdamW on
  mnist1d.
- **Margins, 18 November:** without fresh seeds, the margin is {_MARGIN} of the error, as with them.
  It had been one percentage point. On CIFAR-10, the claim on a decay tuned at the lowest α turned
  from *held* to *not held*.
- **Parts, 18 November:** a part that rests on several measures needs its wider interval too before
  it decides a claim. On text, the conjecture on AdaGrad turned from *not held* to *not decided*.
- **Intervals of s and of budget exponents, 18 November:** simulations on landscapes smoothed from
  the records showed that they covered too rarely ([how often
  now](exponents.md#coverage-on-real-landscapes)), and they became wider. On text, "The best λ_norm
  is alike over budgets" turned from *not held* to *not decided*.
- **Six seeds, 18 and 19 November:** on mnist1d and text, they replaced two, and for budgets five
  and three. Those of the 19th decided five claims on text, "The best λ_norm is alike over budgets"
  among them. On mnist1d, "Longer budgets want a smaller λ" turned from *held* to *not decided*: on
  the finer grid, the best λ hardly moves with the epochs.
- **Knees, 18 November:** their intervals became wider, so that fewer are seen. SGD and SGDW on
  mnist1d have one s now. No verdict changed.
- **A run that diverged, 19 November:** its infinite training loss counts as the highest of the
  others. It had made a part of a claim unknown. No verdict changed.
- **Keeping λ, 19 November:** what it costs two methods is compared over the same changes of α, and
  within a seed. Before, a method without one of them was compared over the others. On text, "AdamW
  is more separable than Adam" turned from *not held* to *not decided*.
- **The gap between Adam and SGDWR, 19 November:** its interval has the test set's sampling error,
  as other errors of fresh seeds do. At the ends of earlier cycles that error is unknown, because
  only the last epoch keeps which examples were missed. No verdict changed.
- **Better schedules, 19 November:** the order of the schedules is now measured, and must be the
  same for Adam and AdamW. It had been taken from the paper, but on text step-drops do worse than a
  fixed rate. There, "Decoupled decay gains more, the better the schedule" turned from *not held* to
  *not decided*.
- **Curves, 19 November:** whether those of Adam and AdamW coincide was computed from mismatched
  settings on CIFAR-10, where runs are in the order in which they ended. It was open, and still is.

Rounding alone can change much on text. When the conjecture was trained twice there with the same
two seeds, by versions of the code that round differently, half of the test errors moved by 0.03
points or more, one by 15.6, and two verdicts changed. On a GPU, repeats of text differ in the same
way ([by how much](../results/README.md)).
"""
