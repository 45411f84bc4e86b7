"""Forms: the name under which a stored file or answer states its format, such as psidp-table-1."""

from psidp.errors import NewerFormError

__all__ = ["check_form"]


def check_form(found: object, known: str, what: str) -> None:
    """Refuse what a newer psidp wrote, before anything is changed; files of version 0.2 may state no form (None).

    Examples:
        >>> check_form(None, "psidp-table-1", "the answer in entry 7")
        >>> check_form("psidp-table-2", "psidp-table-1", "the answer in entry 7")
        Traceback (most recent call last):
        psidp.errors.NewerFormError: the answer in entry 7 has the form 'psidp-table-2'; this psidp reads ...
    """
    if found not in (None, known):
        raise NewerFormError(f"{what} has the form {found!r}; this psidp reads {known!r}. Install a newer psidp.")
