"""The factorized model inside scikit-learn: a transformer that refits the population in every fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.fit.factorized import Model
from fidm.fit.fitted import Fit
from fidm.model.channels import Channel
from fidm.tasks.beliefs import Believes
from fidm.tasks.model import TaskModel
from fidm.types import Floats, Values


class FactorizedFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns people into the numbers of their profile, learning what they share from the training fold.

    ``X`` is a :class:`fidm.Cohort`, which scikit-learn can cut into folds; or, to stand beside other
    features, the participants' ids, and ``cohort`` holds their data.

    Parameters
    ----------
    task : TaskModel, or several
        As in :class:`fidm.Model`.
    cohort : Cohort, optional
        Where to look people up if ``X`` holds ids: one column, or a one-dimensional array.
    channels, lapse, inferred
        As in :class:`fidm.Model`.
    method, population, joint
        As in :meth:`fidm.Model.fit`.
    scale : {"log", "raw"}
        Whether the first feature is log η or η.
    values : Values, or several, optional
        The tasks' values, where they are solved already; else every fold solves the tasks again.
    believes : TaskModel, Values, or several by the name of the task, optional
        As in :class:`fidm.Model`.

    Attributes
    ----------
    fit_ : Fit
        What was learned.

    Examples
    --------
    >>> import fidm, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> task = fidm.load_task("errands")
    >>> cohort = fidm.simulate_cohort(task, 80, seed=1)
    >>> slow = cohort.participants["true_duration"].to_numpy() > 0
    >>> pipeline = make_pipeline(fidm.sklearn.FactorizedFeatures(task), LogisticRegression())
    >>> bool(cross_val_score(pipeline, cohort, slow, scoring="roc_auc").mean() > 0.8)
    True
    """

    def __init__(
        self,
        task: TaskModel | Iterable[TaskModel],
        cohort: Cohort | None = None,
        *,
        channels: Sequence[Channel] | None = None,
        lapse: float | Literal["estimate"] | None = None,
        inferred: float = 0.0,
        method: Literal["eb", "mle"] = "eb",
        population: Literal["random", "pooled"] = "random",
        joint: bool = False,
        scale: Literal["log", "raw"] = "log",
        values: Values | Sequence[Values] | None = None,
        believes: Believes | None = None,
    ) -> None:
        self.task = task
        self.cohort = cohort
        self.channels = channels
        self.lapse = lapse
        self.inferred = inferred
        self.method = method
        self.population = population
        self.joint = joint
        self.scale = scale
        self.values = values
        self.believes = believes

    def fit(self, X: Cohort | ArrayLike, y: Any = None) -> FactorizedFeatures:  # noqa: N803
        """Learn from these people what people share; ``y`` is not looked at."""
        people = self._people(X)
        model = Model(
            self.task,
            channels=self.channels,
            lapse=self.lapse,
            inferred=self.inferred,
            values=self.values,
            believes=self.believes,
        )
        self.fit_: Fit = model.fit(people, method=self.method, population=self.population, joint=self.joint)
        self.n_features_in_ = 1
        return self

    def transform(self, X: Cohort | ArrayLike) -> Floats:  # noqa: N803
        """Return the features of these people, [n, K]; NaN where there is nothing to estimate from."""
        check_is_fitted(self, "fit_")
        return self.fit_.profile(self._people(X)).features(scale=self.scale)[0]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        check_is_fitted(self, "fit_")
        first = "log_action_sensitivity" if self.scale == "log" else "action_sensitivity"
        return np.array([first, *self.fit_.parameters[1:]], dtype=object)

    def _people(self, X: Any) -> Cohort:  # noqa: N803
        if isinstance(X, Cohort):
            return X
        if self.cohort is None:
            raise DataError(
                "X must be a Cohort; or give FactorizedFeatures a cohort, and X the ids of its participants."
            )
        ids = np.asarray(X, dtype=object)
        if ids.ndim == 2 and ids.shape[1] == 1:
            ids = ids[:, 0]
        if ids.ndim != 1:
            raise DataError(f"X has the shape {ids.shape}; one column of participants' ids is needed.")
        names = [
            str(int(name)) if isinstance(name, float) and name.is_integer() else str(name) for name in ids
        ]
        return self.cohort.select(names)
