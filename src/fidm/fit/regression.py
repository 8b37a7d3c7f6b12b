r"""How people's latent parameters go with what else is known of them: groups, age, education.

Estimates of single people must not be compared: with few choices they are biased or drawn to the mean, and
the more so the less somebody did. Instead the population itself depends on the covariates x of a person,

.. math::

    \log \eta_j \sim N(m + \gamma^\top (x_j - \bar x), s^2), \qquad
    \theta_j \sim N(\gamma^\top (x_j - \bar x), s^2),

and γ is learned from everybody's likelihood together with the rest of the population. Nobody is left out
because their own estimate is infinite, and a person with few choices counts for what they tell.

Standard errors are those of :func:`fidm.fit.population.sandwich`; intervals and tests take Student's t
with as many degrees of freedom as there are people beyond the numbers that are learned, or with one less than
there are clusters if that is fewer.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from polars import selectors as cs
from scipy import linalg, stats

from fidm.cohort import Cohort
from fidm.errors import DataError, FitError, Problem, count, few, listed, meant, remedy
from fidm.fit import offsets
from fidm.fit.population import degrees, enough_known, errors_of, random_intercepts
from fidm.fit.profile import told_apart
from fidm.fit.sensitivity import SensitivityPrior, learn_slopes, posterior
from fidm.model.action import Choices
from fidm.model.channels import Channel
from fidm.model.effort import Levels, Observed, design_names
from fidm.types import Flags, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How a formula makes numbers of what is known of people, as the training part showed it.

    Parameters
    ----------
    formula : str
        As it was given, without an outcome.
    names : tuple of str [C]
        The columns it makes, the intercept left out.
    terms : mapping of str to tuple of int
        Which columns belong to each of its terms.
    centre : float array [C]
        The columns' means over the training part, which are taken off.
    covariance : float array [C, C]
        How the columns go together in the training part.
    categories : mapping of str to list
        The values of every variable that is taken for categories.
    usual : mapping of str to float
        The median of every other variable.
    state : mapping of str to mapping
        What transforms such as splines have learned, by the term.
    """

    formula: str
    names: tuple[str, ...]
    terms: Mapping[str, tuple[int, ...]]
    centre: Floats
    covariance: Floats
    categories: Mapping[str, list[Any]]
    usual: Mapping[str, float]
    state: Mapping[str, Any]

    @classmethod
    def of(cls, participants: pl.DataFrame, formula: str) -> tuple[Layout, Floats]:
        """Lay out a formula as ``"age + C(group)"``, and return its columns [P, C] with it.

        Who lacks any of its variables has NaN.
        """
        from formulaic import Formula
        from formulaic.errors import FormulaicError

        try:
            parsed = Formula(formula)
            if not hasattr(parsed, "required_variables") or hasattr(parsed, "lhs"):
                raise DataError(
                    f"The formula {formula!r} must have no outcome: what is explained is η and θ."
                )
        except (FormulaicError, SyntaxError) as error:
            raise DataError(
                f"The formula {formula!r} cannot be read: {_plainly(error)} Write terms with + between them, "
                "as in age + C(group), and close every bracket and quotation mark."
            ) from None
        if not variables(formula):
            raise DataError(f"The formula {formula!r} names no column of the participants.")
        used, complete = _used(participants, formula)
        if not complete.any():
            raise DataError(f"Nobody has all of what the formula {formula!r} names.")
        made = _matrix(formula, used.filter(complete))
        spec = made.model_spec
        kept = [i for i, name in enumerate(spec.column_names) if name != "Intercept"]
        names = tuple(str(spec.column_names[i]) for i in kept)
        place = {name: i for i, name in enumerate(names)}
        terms = {
            str(one.term): tuple(place[name] for name in one.columns)
            for one in spec.structure
            if set(one.columns) <= set(place) and one.columns
        }
        empty = [str(one.term) for one in spec.structure if not one.columns]
        if empty:
            raise DataError(f"{', '.join(empty)} of the formula {formula!r} is the same for everybody.")
        categories = _categories(formula, spec.encoder_state)
        numbers = used.filter(complete).select(pl.exclude(list(categories)))
        matrix = _finite(formula, np.asarray(made, dtype=np.float64)[:, kept], participants.filter(complete))
        found = cls(
            formula,
            names,
            terms,
            matrix.mean(axis=0),
            np.atleast_2d(np.cov(matrix, rowvar=False, ddof=0)) if len(names) else np.zeros((0, 0)),
            categories,
            {name: float(np.median(numbers[name].cast(pl.Float64).to_numpy())) for name in numbers.columns},
            spec.transform_state,
        )
        found._check(matrix)
        values = np.full((participants.height, len(names)), np.nan)
        values[complete] = matrix - found.centre
        return found, values

    def _check(self, matrix: Floats) -> None:
        """Raise where a column says nothing that the others do not say."""
        scale = np.sqrt(np.diag(self.covariance))
        flat = [name for name, one in zip(self.names, scale, strict=True) if not one > 1e-12]
        if flat:
            raise DataError(f"{', '.join(flat)} of the formula {self.formula!r} is the same for everybody.")
        if np.linalg.matrix_rank((matrix - self.centre) / scale) < len(self.names):
            raise DataError(
                f"The columns {', '.join(self.names)} of the formula {self.formula!r} follow from each "
                "other. Leave one out."
            )

    def values(self, participants: pl.DataFrame) -> Floats:
        """Return the columns of any people, [P, C], laid out as those of the training part.

        Somebody who lacks a variable, or has a category that nobody of the training part had, is refused.
        """
        require_known(self.formula, participants)
        used, _ = _used(participants, self.formula)
        self._check_types(used)
        for name, known in self.categories.items():
            unseen = ~used[name].is_in(pl.Series(known).implode())
            if unseen.any():
                raise DataError(
                    f"{name} has values that nobody of the training part had, of "
                    f"{few(participants['participant'].filter(unseen).to_list())}. It had: "
                    f"{', '.join(map(str, known))}."
                )
        # Below them stand all categories of the training part, so that the columns are the same.
        height = max((len(known) for known in self.categories.values()), default=0)
        every = {name: [value] * height for name, value in self.usual.items()}
        every |= {name: (known * height)[:height] for name, known in self.categories.items()}
        below = [pl.Series(name, every[name], strict=False).cast(used.schema[name]) for name in used.columns]
        made = _matrix(self.formula, pl.concat([used, pl.DataFrame(below)]), self.state)
        order = [made.model_spec.column_names.index(name) for name in self.names]
        matrix = np.asarray(made, dtype=np.float64)[: used.height, order]
        return _finite(self.formula, matrix, participants) - self.centre

    def _check_types(self, used: pl.DataFrame) -> None:
        """Raise where a text stands for a number, or a number for a text."""
        texts = {name for name, known in self.categories.items() if isinstance(known[0], str)}
        for name, kind in used.schema.items():
            is_text = not (kind.is_numeric() or kind == pl.Boolean)
            if is_text != (name in texts):
                now, then = ("text", "a number") if is_text else ("a number", "text")
                raise DataError(f"{name} is {now} here, and was {then} in the training part.")

    @property
    def references(self) -> dict[str, str]:
        """The category that the others of each variable are compared with, where there is one."""
        parts = [_level(part) for column in self.names for part in _parts(column)]
        found = {}
        for name, known in self.categories.items():
            own = {level.removeprefix("T.") for owner, level in parts if owner == name and level[:2] == "T."}
            left = [str(one) for one in known if str(one) not in own]
            if own and len(left) == 1:
                found[name] = left[0]
        return found

    def words(self, column: str) -> str:
        """Return what a column is called in words: ``"age × group: patient / control"``."""
        said = []
        for part in _parts(column):
            name, level = _level(part)
            if level.startswith("T.") and name in self.references:
                said.append(f"{name}: {level[2:]} / {self.references[name]}")
            else:
                said.append(f"{name}: {level}" if level in map(str, self.categories.get(name, ())) else part)
        return " × ".join(said)

    def notes(self) -> list[str]:
        """Return how slopes are to be read: what categories are compared with, and where others are 0."""
        said = []
        for name, base in self.references.items():
            known = self.categories[name]
            order = "alphabetical order" if known == sorted(map(str, known)) else "order"
            how = f"C({name}, contr.treatment(base={known[1]!r})) compares with {known[1]}"
            more = f", the first in {order}. {how}" if base == str(known[0]) else ""
            said.append(f"{name}: compared with {base}{more}.")
        crossed = [_parts(term) for term in self.terms if len(_parts(term)) > 1]
        for own in self.terms:
            others = list(dict.fromkeys(one for term in crossed if own in term for one in term if one != own))
            if others:
                raw = [one for one in others if one in self.usual]
                more = "".join(f" center({one}) instead of {one} gives it at the mean {one}." for one in raw)
                where = listed(map(self._zero, others))
                said.append(f"{_level(own)[0]}: as it interacts, its own slope is that at {where}.{more}")
        return said

    def _zero(self, factor: str) -> str:
        """Where a factor of an interaction is 0, in words."""
        name = _level(factor)[0]
        if name in self.references:
            return f"{name} {self.references[name]}"
        inner = re.fullmatch(r"(?:center|scale|standardize)\((.*)\)", factor)
        return f"the mean {inner[1]}" if inner else f"{factor} 0"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as plain values."""
        return {
            "formula": self.formula,
            "names": list(self.names),
            "terms": {name: list(columns) for name, columns in self.terms.items()},
            "centre": self.centre.tolist(),
            "covariance": self.covariance.tolist(),
            "categories": dict(self.categories),
            "usual": dict(self.usual),
            "state": _plain(self.state),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Layout:
        """Make a layout of plain values."""
        return cls(
            str(saved["formula"]),
            tuple(saved["names"]),
            {name: tuple(columns) for name, columns in saved["terms"].items()},
            np.array(saved["centre"], dtype=np.float64),
            np.array(saved["covariance"], dtype=np.float64).reshape(len(saved["names"]), -1),
            saved["categories"],
            saved["usual"],
            _with_numbers(saved["state"]),
        )


def _used(participants: pl.DataFrame, formula: str) -> tuple[pl.DataFrame, Flags]:
    """The variables of a formula, and who lacks none of them."""
    wanted = variables(formula)
    absent = sorted(wanted - set(participants.columns))
    if absent:
        raise DataError(
            f"The formula {formula!r} names {', '.join(map(repr, absent))}, which the participants do "
            f"not have. {meant(absent, participants.columns)}"
        )
    used = participants.select(sorted(wanted))
    return used, without_missing(used)


def require_known(formulas: Formulas, participants: pl.DataFrame) -> None:
    """Raise where people lack what formulas name, with how many lack each column, and who they are."""
    wanted = [formulas] if isinstance(formulas, str) else formulas.values()
    columns = sorted(set().union(*(_used(participants, formula)[0].columns for formula in wanted)))
    lost = {name: ~without_missing(participants.select(name)) for name in columns}
    if not any(flags.any() for flags in lost.values()):
        return
    n = int(np.any(list(lost.values()), axis=0).sum())
    ids, what = participants["participant"], listed(name for name in columns if lost[name].any())
    raise DataError(
        f"{count(n, 'participant')} without {what}, which the prior depends on. Fill this in, exclude them "
        "(column excluded), or leave the column out of the formula.",
        problems=[
            Problem(f"{name} is missing for {int(own.sum()):,}: {few(ids.filter(pl.Series(own)))}.")
            for name, own in lost.items()
            if own.any()
        ],
    )


def _parts(column: str) -> list[str]:
    """The factors of an interaction, one by one; a colon in brackets belongs to a name."""
    return re.split(r":(?![^(\[]*[)\]])", column)


def _level(part: str) -> tuple[str, str]:
    """The variable of a factor, as far as it has one, and what stands in brackets behind it."""
    factor, level = own.groups() if (own := re.fullmatch(r"(.*)\[([^\[]*)\]", part)) else (part, "")
    owners = _owners(factor)
    return (owners[0] if len(owners) == 1 else factor), level


def _owners(factor: str) -> list[str]:
    """The variables that a factor takes for categories, by how it is written."""
    return [
        one for one in variables(factor) if re.match(rf"(C\(\s*)?`?{re.escape(one)}`?\s*([,)]|$)", factor)
    ]


def _plainly(error: Exception) -> str:
    """What formulaic says, in one line and without colours, and where."""
    said, _, marked = re.sub(r"\x1b\[[\d;]*m", "", str(error)).partition("\n\n")
    where = re.search("⧛(.*)⧚", marked)
    inner = re.fullmatch(r"Unable to evaluate factor `(.*)`\. \[\w+: (.*)\]", said, flags=re.DOTALL)
    text = f"{inner[1]}: {inner[2]}" if inner else said
    text = " ".join(text.replace("context marker", "bracket").replace("quote context", "it").split()).rstrip(
        "."
    )
    return f"{text}{f', at {where[1]!r}' if where else ''}."


def _why(error: Exception, formula: str, used: pl.DataFrame) -> str:
    """Why a formula cannot be computed of a table, and what to do."""
    from formulaic.transforms import TRANSFORMS

    said, cause = _plainly(error), error.__cause__
    if isinstance(cause, NameError):
        known = sorted(TRANSFORMS, key=str.casefold)
        return f"there is no function {cause.name!r}. {meant([cause.name or ''], known)}"
    texts = [name for name, kind in used.schema.items() if not (kind.is_numeric() or kind == pl.Boolean)]
    base = re.match(r"Value `'?(.*?)'?` for `TreatmentContrasts.base`", said)
    if base:
        grouped = [name for name in used.columns if re.search(rf"C\(\s*`?{re.escape(name)}\b", formula)]
        known = [str(one) for name in grouped for one in used[name].unique().sort()]
        return f"base={base[1]!r} is not a category of {listed(grouped)}. {meant([base[1]], known)}"
    own = [name for name in texts if name in variables(said.partition(":")[0])]
    if own and not isinstance(cause, SyntaxError):
        what = said.partition(":")[0]
        return f"{what} needs numbers, and {own[0]} holds text. C({own[0]}) makes groups of it."
    return said


def _matrix(formula: str, used: pl.DataFrame, state: Mapping[str, Any] | None = None) -> Any:
    """What formulaic makes of a table, with transforms as they were learned elsewhere."""
    from formulaic import ModelSpec
    from formulaic.errors import FormulaicError

    try:
        spec = ModelSpec.from_spec(formula, na_action="ignore", output="numpy")
        if state is not None:
            spec = spec.update(transform_state=copy.deepcopy(dict(state)))
        with np.errstate(all="ignore"):
            return spec.get_model_matrix(used)
    except (FormulaicError, SyntaxError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if "extrapolation" in str(error):
            raise DataError(
                f"The formula {formula!r}: somebody lies beyond the range that its spline was learned in. "
                "bs(…, extrapolation='clip') takes them for the nearest in it, 'extend' goes on as it ends."
            ) from None
        raise DataError(
            f"The formula {formula!r} does not suit these people: {_why(error, formula, used)}"
        ) from None


def _finite(formula: str, matrix: Floats, participants: pl.DataFrame) -> Floats:
    """The columns [P, C] as they are, if all of them are finite."""
    odd = pl.Series(~np.isfinite(matrix).all(axis=1))
    if odd.any():
        who = (
            f" of {few(participants['participant'].filter(odd))}"
            if "participant" in participants.columns
            else ""
        )
        raise DataError(f"The formula {formula!r} gives no finite number{who}.")
    return matrix


def _categories(formula: str, encoded: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of every variable that a formula takes for categories."""
    found = {}
    for factor, (_, state) in encoded.items():
        if "categories" in state:
            names = _owners(factor)
            if len(names) != 1:
                raise DataError(f"{factor} of the formula {formula!r}: make a column of it first.")
            found[names[0]] = [_plain(one) for one in state["categories"]]
    return found


def _plain(state: Any) -> Any:
    """Numbers of a transform as plain ones."""
    if isinstance(state, Mapping):
        return {str(name): _plain(value) for name, value in state.items()}
    if isinstance(state, list | tuple | np.ndarray):
        return [_plain(value) for value in state]
    return getattr(state, "item", lambda: state)()


def _with_numbers(state: Any) -> Any:
    """The same, with names that are numbers as numbers again."""
    if not isinstance(state, Mapping):
        return state
    return {int(name) if name.isdigit() else name: _with_numbers(value) for name, value in state.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """What a formula makes of a table of participants; see :class:`Layout`."""

    formula: str
    names: tuple[str, ...]
    terms: Mapping[str, tuple[int, ...]]
    values: Floats  # the columns less their means over the complete rows, [P, C]; 0 in the others
    complete: Flags  # who lacks none of the formula's variables, [P]

    @classmethod
    def of(cls, participants: pl.DataFrame, formula: str) -> Covariates:
        """Lay out the columns of a formula, as ``"age + C(group)"``."""
        layout, values = Layout.of(participants, formula)
        complete = _used(participants, formula)[1]
        return cls(formula, layout.names, layout.terms, np.where(complete[:, None], values, 0.0), complete)

    def without(self, columns: Sequence[int]) -> Covariates:
        """Return the same without some of the columns."""
        kept = [i for i in range(len(self.names)) if i not in columns]
        place = {old: new for new, old in enumerate(kept)}
        terms = {
            term: tuple(place[i] for i in own)
            for term, own in self.terms.items()
            if all(i in place for i in own)
        }
        names = tuple(self.names[i] for i in kept)
        return Covariates(self.formula, names, terms, self.values[:, kept], self.complete)


FEW_PEOPLE = 5
"""Of categories that fewer people have it is said that their slopes rest on so few."""

FEWEST_CLUSTERS, ENOUGH_CLUSTERS = 5, 20
"""How people of a cluster go together is not told by fewer clusters, nor well by fewer than the second."""

Formulas = str | Mapping[str, str]
"""A formula for all parameters, or one for each that is named."""


def layouts_of(
    formulas: Formulas | None,
    parameters: Sequence[str],
    people: Cohort,
    method: str,
    cluster: str | None = None,
) -> tuple[dict[str, Layout], dict[str, Floats]]:
    """Return how covariates of a training part are laid out, and their columns [P, C], by the parameter."""
    if formulas is None:
        if cluster is not None:
            raise FitError("cluster widens the standard errors of slopes; it needs regress.")
        return {}, {}
    if method != "eb":
        raise FitError(
            f"{remedy('regress', '--regress')} makes the prior depend on covariates; it needs "
            + remedy("method='eb'.", "--method eb.")
        )
    wanted = dict.fromkeys(parameters, formulas) if isinstance(formulas, str) else dict(formulas)
    unknown = [name for name in wanted if name not in parameters]
    if unknown:
        raise FitError(f"regress names {few(unknown)}, not a parameter. {meant(unknown, parameters)}")
    found: dict[str, tuple[Layout, Floats]] = {}
    participants = people.participants
    named = set().union(*(variables(formula) for formula in wanted.values()))
    within = sorted(named.intersection(people.episodes.columns) - set(participants.columns))
    if within:
        raise FitError(
            f"{listed(within)} is a column of the episodes; regress takes columns of the participants. How "
            "people change with it: "
            + remedy(
                f"fidm.compare(task, cohort, by={within[0]!r}).", f"fidm compare STUDY --by {within[0]}."
            )
        )
    for formula in dict.fromkeys(wanted.values()):
        found[formula] = Layout.of(participants, formula)
    require_known(wanted, participants)
    return (
        {name: found[formula][0] for name, formula in wanted.items()},
        {name: found[formula][1] for name, formula in wanted.items()},
    )


def say_rare(
    layouts: Mapping[str, Layout],
    known: Mapping[str, Floats],
    participants: pl.DataFrame,
    seen: Mapping[str, Flags],
) -> list[str]:
    """Say which categories, and combinations of them, so few people have that slopes rest on them alone."""
    counts: dict[str, list[int]] = {}
    for parameter, layout in layouts.items():
        people = participants.filter(pl.Series(seen[parameter]))
        for name, values in layout.categories.items():
            sizes = dict(people[name].value_counts().iter_rows())
            for value in values:
                base = ", the reference" if layout.references.get(name) == str(value) else ""
                counts.setdefault(f"{name} {value}{base}", []).append(sizes.get(value, 0))
        sizes_of = (np.abs(known[parameter][seen[parameter]] + layout.centre) > 1e-9).sum(axis=0)
        for column, n in zip(layout.names, sizes_of.tolist(), strict=True):
            if column.count("[") > 1:
                counts.setdefault(layout.words(column), []).append(n)
    rare = [
        f"{what} ({'' if min(own) == max(own) else f'{min(own)} to '}{count(max(own), 'person', 'people')})"
        for what, own in counts.items()
        if min(own) < FEW_PEOPLE
    ]
    if not rare:
        return []
    return [
        f"Fewer than {FEW_PEOPLE} people: {listed(rare)}. Slopes of these categories rest on so few people. "
        "Merge categories, or exclude these people."
    ]


def clusters_of(participants: pl.DataFrame, column: str | None) -> Integers | None:
    """Return which cluster everybody belongs to, [P], or None where nothing is clustered."""
    if column is None:
        return None
    if column not in participants.columns:
        raise DataError(
            f"The participants have no column {column!r} to cluster by. "
            f"{meant([column], participants.columns)}"
        )
    if participants[column].null_count():
        lost = participants.filter(pl.col(column).is_null())["participant"]
        raise DataError(
            f"{count(len(lost), 'participant')} without {column} to cluster by: {few(lost)}. Fill it in, or "
            "exclude them (column excluded)."
        )
    if (n := participants[column].n_unique()) < FEWEST_CLUSTERS:
        raise DataError(
            f"{column} makes {count(n, 'cluster')}; standard errors need {FEWEST_CLUSTERS} or more. Put it "
            f"into the formula instead, as C({column})."
        )
    return participants[column].rank("dense").cast(pl.Int64).to_numpy() - 1


def say_clusters(clusters: Integers, column: str | None) -> str:
    """Return that standard errors allow for clusters, and whether these are many enough."""
    n = len(np.unique(clusters))
    few_ones = f" With fewer than {ENOUGH_CLUSTERS} they may be too small." if n < ENOUGH_CLUSTERS else ""
    return f"Standard errors of slopes allow for {count(n, 'cluster')} ({column}).{few_ones}"


def variables(formula: str) -> set[str]:
    """Return the columns that a formula names: not what it calls, nor its settings, nor texts.

    Examples
    --------
    >>> sorted(variables("bs(age, df=3) + C(group, contr.treatment('a')) + `shoe size`"))
    ['age', 'group', 'shoe size']
    """
    quoted = re.findall(r"`([^`]+)`", formula)
    bare = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", " ", formula)
    names = re.findall(r"(?<![\w.])([^\W\d][\w.]*)(?![\w.]|\s*[(=])", bare)
    return {*quoted, *(name for name in names if not name.startswith("contr."))}


def without_missing(table: pl.DataFrame) -> Flags:
    """Return which rows have a value in every column, [P]; NaN is none."""
    lost = table.select(pl.all().is_null(), cs.float().is_nan().name.suffix(" nan")).fill_null(value=True)
    return ~np.asarray(lost.to_numpy().any(axis=1), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """How one parameter goes with covariates, on the scale of log η or θ."""

    parameter: str
    slopes: Floats  # per unit of each covariate, [C]
    covariance: Floats  # their sampling covariance, [C, C]
    spread: float  # the sd of people after what the covariates say
    log_spread_se: float
    # The share of the remaining differences among people that their data account for, if the spread is as
    # small as its 95 % interval allows.
    least_reliability: float
    log_likelihood: float  # of everybody's data under the best population
    n_people: int  # how many people it rests on
    n_free: int  # how many numbers were learned
    freedom: float  # of tests: people beyond the numbers learned, or clusters less one if fewer
    warnings: tuple[str, ...] = ()

    @property
    def se(self) -> Floats:
        """The slopes' standard errors, [C]."""
        return errors_of(self.covariance)

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the slopes' intervals."""
        reach = stats.t.ppf(0.5 + 0.5 * level, self.freedom) * self.se
        return self.slopes - reach, self.slopes + reach

    def p_values(self) -> Floats:
        """Return the probability of slopes as far from 0 as these, if there were none."""
        return np.asarray(2 * stats.t.sf(np.abs(self.slopes) / self.se, self.freedom))

    def wald(self, columns: Sequence[int]) -> float:
        """Return the p-value of several slopes together, by Wald's test."""
        return wald(self.slopes, self.covariance, columns, self.freedom)

    def against(self, smaller: Regressed) -> float:
        """Return the p-value of what a smaller regression leaves out, by the ratio of likelihoods.

        Twice its logarithm, per number left out and lowered by the share of numbers learned, is compared
        with an F distribution, which in large studies is the usual χ². Where people of a cluster go together,
        take :meth:`wald`.
        """
        width = self.n_free - smaller.n_free
        gain = max(2 * (self.log_likelihood - smaller.log_likelihood), 0.0)
        return float(stats.f.sf(gain / width * self.freedom / self.n_people, width, self.freedom))


def wald(slopes: Floats, covariance: Floats, columns: Sequence[int], freedom: float) -> float:
    """Return the p-value of some slopes together: F of their size measured by their covariance."""
    some = list(columns)
    own = slopes[some]
    size = float(own @ linalg.pinvh(covariance[np.ix_(some, some)]) @ own) / len(some)
    return float(stats.f.sf(size, len(some), freedom))


def regress_sensitivity(
    choices: Choices,
    known: Floats,
    *,
    lapse: float | None,
    clusters: Integers | None = None,
    workers: int = 1,
) -> Regressed:
    """Learn how log η goes with covariates [P, C].

    ``lapse=None`` estimates the lapse rate together with the rest. People of the same cluster [P] may go
    together.
    """
    told = np.diff(choices.person_offsets) > 0
    width = known.shape[1]
    enough_known(known, told, 2)
    some = replace(choices, known=known).take(told)
    own_clusters = None if clusters is None else clusters[told]
    found, rate = learn_slopes(some, lapse=lapse, clusters=own_clusters, workers=workers)
    spread, log_se = math.exp(found.best[1]), float(max(found.se[1], found.doubt[1]))
    slopes = found.best[len(found.best) - width :]
    reach = float(np.abs(offsets.rise(some.known, slopes)).max())
    prior = SensitivityPrior(float(found.best[0]), spread, slopes=slopes, reach=reach)
    own, _ = posterior(some, prior, lapse=rate, level=0.95, workers=workers)
    return Regressed(
        "action_sensitivity",
        slopes,
        found.of_slopes(width),
        spread,
        log_se,
        _least_reliability(own.log_se, spread, log_se),
        found.log_posterior,
        int(told.sum()),
        len(found.best),
        degrees(told, len(found.best), clusters),
    )


def regress_offsets(
    channel: Channel,
    seen: Observed,
    levels: Levels,
    known: Floats,
    *,
    clusters: Integers | None = None,
    workers: int = 1,
) -> Regressed:
    """Learn how θ of a channel goes with covariates [P, C]: they move the mean of everybody's offset."""
    data = replace(seen, known=known)
    names = design_names(channel, levels)
    learned = random_intercepts(channel, data, names, workers, plausible=True, clusters=clusters)
    shared = learned.population
    spread = float(shared.sd)
    log_se = learned.se["sd"] / spread
    own, _ = offsets.posterior(channel, data, shared, level=0.95, workers=workers)
    some = seen.counts > 0
    n_free = len(names) + known.shape[1] + bool(channel.shape_name) + 1
    assert learned.covariance is not None  # noqa: S101
    return Regressed(
        channel.name,
        shared.slopes,
        learned.covariance,
        spread,
        log_se,
        _least_reliability(own.se[some], spread, log_se),
        learned.log_likelihood,
        int(some.sum()),
        n_free,
        degrees(some, n_free, clusters),
        learned.warnings,
    )


def _least_reliability(se: Floats, spread: float, log_se: float) -> float:
    """The reliability at the lower end of the spread's interval; 0 where that is not known."""
    low = spread * math.exp(-1.96 * log_se) if math.isfinite(log_se) else 0.0
    return told_apart(se, spread, low)
