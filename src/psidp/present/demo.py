"""The demonstration: one mechanism explained, three compared, the paper's experiment reproduced."""

from typing import Any

from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import mean_of_known_size
from psidp.present.comparison import rank
from psidp.present.digits import up
from psidp.present.paper import experiment
from psidp.present.tables import console, show_comparison, show_explanation, show_paper

__all__ = ["demo"]


def demo() -> None:
    """Tell the story on the console."""
    terms: Any = {"adjacency": "replace-one", "unit": "patient"}
    sensitivity = mean_of_known_size(18.0, 90.0, size=2000)
    mine = Guarantee.gaussian(sensitivity=sensitivity, sigma=0.072, **terms)
    console.rule("1. One mechanism")
    console.print(
        "A clinic publishes the mean age of its 2,000 patients, ages clipped to 18 to 90. Replacing one patient moves "
        f"the mean by at most {up(sensitivity, 3)} years: that is the sensitivity. It adds Gaussian noise with a "
        "standard deviation of sigma = 0.072 years. What did it promise?\n"
    )
    show_explanation(mine)

    console.rule("2. Three mechanisms")
    console.print("Two colleagues describe theirs in other words. Which of the three is the most private?\n")
    target, area = Guarantee.gaussian(epsilon=1, delta=1e-5, **terms), Guarantee.gaussian(auc=0.75, **terms)
    show_comparison(rank([("the mean age", mine), ("epsilon=1,delta=1e-5", target), ("auc=0.75", area)]))

    console.rule("3. The paper's experiment")
    console.print("Three roads from psi to epsilon. Only the first is exact; the other two give privacy away.\n")
    show_paper(7, experiment(7))
    console.print("Next: psidp explain --help, psidp compare --help, and the README's tour.")
