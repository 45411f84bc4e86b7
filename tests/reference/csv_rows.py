"""What a CSV file says, in plain Python: one byte string a line, one letter after the other."""


def rows(text, width, longest):
    """The rows of a file without its first line; fields as text, None where they are missing."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [row for line in lines if (row := row_of(line, longest)) is not None and len(row) == width]


def row_of(line, longest):
    """The fields of one line, or None where it is left out."""
    if len(line) > longest:
        return None
    line = line[:-1] if line.endswith(b"\r") else line
    if not line:
        return None
    found, field, inside = [], "", False
    for letter in line.decode("utf-8", "backslashreplace"):
        inside ^= letter == '"'
        if letter == "," and not inside:
            found.append(field)
            field = ""
        else:
            field += letter
    return None if inside else [said(field) for field in [*found, field]]


def said(field):
    """What a field says."""
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field or None
