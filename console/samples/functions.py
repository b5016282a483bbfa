"""Functions that the sample state machines call, written as Lambda handlers."""

from __future__ import annotations

import random
import time
import uuid
from typing import Any

Event = Any


class AccountAlreadyExistsException(Exception):
    """The account is in use."""


class CardDeclined(Exception):
    """The bank declines the payment."""


class WarehouseBusy(Exception):
    """The warehouse is busy; retry later."""


class CarrierUnavailable(Exception):
    """The carrier is unavailable; retry later."""


def find_address(event: Event, context: object) -> dict[str, Any]:
    """Return a made-up address."""
    del context
    time.sleep(0.4)
    return {
        "customerId": _field_of(event, "customerId"),
        "street": "1 Harbour Road",
        "city": "Bergen",
    }


def find_phone(event: Event, context: object) -> dict[str, Any]:
    """Return a made-up phone number."""
    del context
    time.sleep(0.8)
    return {"customerId": _field_of(event, "customerId"), "phone": "+47 555 0134"}


def add(event: list[float], context: object) -> float:
    """Return the sum of two numbers."""
    del context
    return event[0] + event[1]


def subtract(event: list[float], context: object) -> float:
    """Return the difference of two numbers."""
    del context
    return event[0] - event[1]


def put_message(event: Event, context: object) -> dict[str, Any]:
    """Pretend to store a message."""
    del context
    return {"stored": True, "message": event}


def create_account(event: Event, context: object) -> None:
    """Raise the error for an existing account."""
    del event, context
    raise AccountAlreadyExistsException("Account is in use!")


def pay_out_drink(event: Event, context: object) -> str:
    """Return the drink's name."""
    del context
    time.sleep(0.5)
    return str(event["drink"]["name"])


def pay_out_change(event: Event, context: object) -> int:
    """Return deposit less price."""
    del context
    time.sleep(0.3)
    return int(event["deposit"] - event["drink"]["price"])


# -- order processing ------------------------------------------------------------------------------


def check_inventory(event: Event, context: object) -> dict[str, Any]:
    """Return whether all items are in stock, and the missing ones: more than 100 of an item."""
    del context
    time.sleep(0.5)
    missing = [item["sku"] for item in event["items"] if item.get("quantity", 1) > 100]  # noqa: PLR2004
    return {"available": not missing, "missing": missing}


def score_fraud(event: Event, context: object) -> dict[str, int]:
    """Return a fraud score from 0 to 100 that grows with the total."""
    del context
    time.sleep(0.3)
    return {"score": min(100, int(event["total"]) // 100)}


def reserve_item(event: Event, context: object) -> dict[str, Any]:
    """Reserve one item; every third time the warehouse is busy."""
    del context
    time.sleep(0.3)
    if random.random() < 1 / 3:  # noqa: S311 - a simulation
        raise WarehouseBusy(f"no picker is free for {event['item']['sku']}")
    return {"reservation": uuid.uuid4().hex[:8], **event["item"]}


def charge_card(event: Event, context: object) -> dict[str, Any]:
    """Charge a card; cards that end in 0000 are declined."""
    del context
    time.sleep(0.4)
    if str(event["card"]["number"]).endswith("0000"):
        raise CardDeclined("the bank refused the payment")
    return {"paymentId": uuid.uuid4().hex[:8], "amount": event["amount"]}


def refund_card(event: Event, context: object) -> dict[str, Any]:
    """Refund the payment."""
    del context
    return {"refunded": event["payment"]}


def ship_item(event: Event, context: object) -> dict[str, Any]:
    """Ship the parcel; every fourth time the carrier is unavailable."""
    del context
    time.sleep(0.6)
    if random.random() < 1 / 4:  # noqa: S311 - a simulation
        raise CarrierUnavailable("the van is full")
    return {"tracking": f"TR-{event['orderId']}", "parcels": len(event["reserved"])}


def notify_customer(event: Event, context: object) -> dict[str, Any]:
    """Pretend to send a message."""
    del context
    return {"sentTo": event["customer"].get("email"), "subject": event["subject"]}


def _field_of(event: Event, name: str) -> Any:
    return event.get(name) if isinstance(event, dict) else None


_HERE = "console.samples.functions"
FUNCTIONS = {
    "AddressFinder": f"{_HERE}:find_address",
    "PhoneFinder": f"{_HERE}:find_phone",
    "PutMessage": f"{_HERE}:put_message",
    "CreateAccount": f"{_HERE}:create_account",
    "PayOutDrink": f"{_HERE}:pay_out_drink",
    "PayOutChange": f"{_HERE}:pay_out_change",
    "CheckInventory": f"{_HERE}:check_inventory",
    "ScoreFraud": f"{_HERE}:score_fraud",
    "ReserveItem": f"{_HERE}:reserve_item",
    "ChargeCard": f"{_HERE}:charge_card",
    "RefundCard": f"{_HERE}:refund_card",
    "ShipItem": f"{_HERE}:ship_item",
    "NotifyCustomer": f"{_HERE}:notify_customer",
    "activity:Add": f"{_HERE}:add",
    "activity:Subtract": f"{_HERE}:subtract",
}
"""Name -> callable; a server's thread works those named ``activity:``."""
