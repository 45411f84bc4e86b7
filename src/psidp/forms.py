"""Forms: the name under which a stored file or answer states its format, such as psidp-table-1."""

from psidp.errors import NewerFormError

__all__ = ["check_form"]


def check_form(found: object, known: str | int, what: str) -> None:
    """Refuse what a newer psidp wrote, before anything is changed; files of version 0.2 may state no form (None).

    Examples:
        >>> check_form(None, "psidp-table-1", "the answer in entry 7")
        >>> check_form("psidp-table-2", "psidp-table-1", "the answer in entry 7")
        Traceback (most recent call last):
        psidp.errors.NewerFormError: the answer in entry 7 must have the form 'psidp-table-1', got 'psidp-table-2'. ...
    """
    if found not in (None, known):
        raise NewerFormError(
            f"{what} must have the form {known!r}, got {found!r}. If a newer psidp wrote it, install that one."
        )
