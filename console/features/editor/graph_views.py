"""View of edits in the editor's graph: the form of a state, the palette, and every edit.

A request has the whole text of the editor. The response has the changed text, which the page's
script inserts as one step of its undo history, and the panel to show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_POST

from console.cli.documents import SourceError
from console.features.editor.conversion import account_of, convert_text
from console.features.editor.edits import operations
from console.features.editor.edits.copying import edge_behind, paste_states
from console.features.editor.edits.definition_tree import DefinitionTree, EditRefused
from console.features.editor.edits.edges import EditDone, GraphEdge, edge_targets, reconnect_edge
from console.features.editor.edits.palette import PIECES, PieceGroup
from console.features.editor.forms import GraphEditForm
from console.features.editor.state_form import read_fields, state_form
from console.features.editor.tag_lines import tag_lines
from console.web.core.numbers import whole_number
from console.web.core.scope import render, require, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    Act = Callable[[DefinitionTree, Mapping[str, str]], EditDone]


def _edge(sent: Mapping[str, str]) -> GraphEdge:
    return GraphEdge(
        source=sent["source"],
        target=sent["target"],
        occurrence=whole_number(sent["occurrence"]) or 0,
        owner=sent["owner"],
        index=whole_number(sent["index"]) or 0,
    )


def _save_form(tree: DefinitionTree, sent: Mapping[str, str]) -> EditDone:
    state = sent["state"]
    changed = read_fields(tree, state, sent)
    if changed:
        operations.put_fields(tree, state, changed)
    renamed = operations.rename_state(tree, state, sent["name"] or state)
    if not changed and not renamed.message:
        return EditDone(state, "Nothing was changed.")
    return EditDone(renamed.selected, renamed.message or f"Changed {state}.")


def _paste(tree: DefinitionTree, sent: Mapping[str, str]) -> EditDone:
    edge = _edge(sent)
    follows_state = sent["state"] and not (edge.source or edge.owner)
    return paste_states(
        tree, edge_behind(tree, sent["state"]) if follows_state else edge, sent["pasted"]
    )


_ACTS: dict[str, Act] = {
    "show": lambda _, sent: EditDone(sent["state"], ""),
    "insert": lambda tree, sent: operations.insert_piece(
        tree, _edge(sent), sent["piece"], sent["account"]
    ),
    "paste": _paste,
    "reconnect": lambda tree, sent: reconnect_edge(tree, _edge(sent), sent["leads_to"]),
    "save": _save_form,
    "delete": lambda tree, sent: operations.delete_state(tree, sent["state"]),
    "duplicate": lambda tree, sent: operations.duplicate_state(tree, sent["state"]),
    "wrap-parallel": lambda tree, sent: operations.wrap_state(tree, sent["state"], "Parallel"),
    "wrap-map": lambda tree, sent: operations.wrap_state(tree, sent["state"], "Map"),
    "add-catch": lambda tree, sent: operations.add_catch(tree, sent["state"]),
    "add-retry": lambda tree, sent: operations.add_retry(tree, sent["state"]),
    "add-branch": lambda tree, sent: operations.add_branch(tree, sent["state"]),
    "add-rule": lambda tree, sent: operations.add_rule(tree, sent["state"]),
}


@require_POST
def edit_graph(request: HttpRequest) -> HttpResponse:
    """Make an edit of the graph; answer 422 with the reason if it is impossible."""
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    sent = {**request.POST.dict(), **GraphEditForm(request.POST).values}
    sent["account"] = scope.project.account_id
    if sent["act"] == "palette":
        return _render_palette(request, sent)
    if sent["act"] == "convert":
        return _convert(request, sent["text"], sent["piece"])
    try:
        edit, tree = _edited(sent)
    except EditRefused as refused:
        return _render_panel(request, sent["text"], sent["state"], refused=str(refused))
    text = tree.text()
    changed = {"new_text": text} if text != sent["text"] else {}
    return _render_panel(request, text, edit.selected, message=edit.message, **changed)


def _render_palette(request: HttpRequest, sent: Mapping[str, str]) -> HttpResponse:
    """Show the actions on an edge: insert a piece, or connect it to another state."""
    edge = _edge(sent)
    groups = [
        (group.value, [piece for piece in PIECES.values() if piece.group is group])
        for group in PieceGroup
    ]
    try:
        targets = edge_targets(DefinitionTree(sent["text"]), edge)
    except EditRefused:  # the text was changed since the graph was drawn
        targets = None
    context = {"groups": groups, "edge": edge, "targets": targets}
    return render(request, "editor/_palette.html", context)


def _convert(request: HttpRequest, text: str, choice: str) -> HttpResponse:
    """Convert YAML or a template to a definition, as one edit that can be undone."""
    try:
        converted = convert_text(text, choice, account_of(scope_of(request)))
    except SourceError as error:
        return _render_panel(request, text, "", refused=str(error))
    if converted is None:
        return _render_panel(request, text, "", refused="The text has no such definition.")
    context: dict[str, Any] = {"new_text": converted.text}
    if converted.machine:
        context |= {"taken": converted.machine, "tags": tag_lines(converted.machine.tags)}
    return _render_panel(request, converted.text, "", message="Converted to JSON.", **context)


def _edited(sent: Mapping[str, str]) -> tuple[EditDone, DefinitionTree]:
    act = _ACTS.get(sent["act"])
    if act is None:
        raise EditRefused(f"The graph has no edit “{sent['act']}”.")
    tree = DefinitionTree(sent["text"])
    edit = act(tree, sent)
    return edit, tree


def _render_panel(
    request: HttpRequest, text: str, selected: str, *, refused: str = "", **more: Any
) -> HttpResponse:
    context: dict[str, Any] = {"refused": refused, **more}
    try:
        if selected:
            context["form"] = state_form(DefinitionTree(text), selected)
    except EditRefused as error:
        context["refused"] = refused or str(error)
    return render(request, "editor/_state_panel.html", context, 422 if refused else 200)
