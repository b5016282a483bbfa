"""A bulk redrive warns of executions that would only run a Fail state again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.console.store.helpers import create, drain, function, start
from tests.console.web.execution.test_root_cause import ORDERS
from tests.console.web.helpers import markup
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

CALL = {"StartAt": "Pay", "States": {"Pay": {**function("pay"), "End": True}}}


def test_a_bulk_redrive_warns_and_offers_the_replay(project: Project, client: Client) -> None:
    """As the redrive of one does; the others can be redriven without them."""
    orders = create(project, ORDERS, "orders")
    led = [drain(start(orders, name=f"led-{number}")) for number in range(2)]
    paid = answer(drain(start(create(project, CALL), name="paid")), "Pay", ("Bad", "broke"))
    shown = markup(client.get("/executions/bulk/?action=redrive&all=1"))
    banner = shown.split('id="only-fail"')[1].split("</div></div>")[0]
    assert "2 of 3 would only run the Fail state again" in banner
    assert f"action=redrive&x={paid.pk}" in banner
    for execution in led:
        assert f"action=start&x={led[1].pk}&x={led[0].pk}" in banner
        replay = f"/machines/orders/executions/{execution.name}/replay/?step=Charge+card&visit=1"
        assert f'{replay}">Replay from' in shown
    others = markup(client.get(f"/executions/bulk/?action=redrive&x={paid.pk}"))
    assert 'id="only-fail"' not in others
    alone = markup(client.get(f"/executions/bulk/?action=redrive&x={led[0].pk}"))
    assert "It would only run the Fail state again" in alone
    stop = markup(client.get(f"/executions/bulk/?action=start&x={led[0].pk}"))
    assert 'id="only-fail"' not in stop
