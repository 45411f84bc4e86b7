"""An option that takes one value is refused where it stands twice, whatever the command."""

import typer

from psidp.cli.main import COMMANDS, app


def commands(group, ctx, words=()):
    """Every command with its words."""
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        if hasattr(found, "list_commands"):
            yield from commands(found, ctx, (*words, name))
        else:
            yield (*words, name), found


def test_an_option_that_takes_one_value_is_refused_where_it_stands_twice(psidp):
    group = typer.main.get_command(app)
    found = dict(commands(group, group.make_context("psidp", ["notation"])))
    assert {words[0] for words in found} == set(COMMANDS)
    options = 0
    for words, command in found.items():
        for option in command.params:
            if option.param_type_name != "option" or option.multiple:
                continue
            options += 1
            given = [option.opts[0]] if option.is_flag else [option.opts[0], "1"]
            code, _, err = psidp(*words, *given, *given)
            assert code == 2, (words, option.opts)
            assert f"{option.opts[0]} must be given once, got it 2 times." in err, (words, option.opts, err)
    assert options > 200
