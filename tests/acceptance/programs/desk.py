"""An app for `holdfast up desk.py`: an agent with two tools, one of which waits for approval, and a skill."""

import holdfast

app = holdfast.App()


@app.tool(idempotent=True)
async def track(parcel: str) -> dict[str, str]:
    """Where a parcel is."""
    return {"parcel": parcel, "place": "Cologne"}


@app.tool
async def refund(parcel: str, euros: float) -> str:
    """Refund the postage."""
    return f"{euros:.2f} euros for {parcel}"


app.agent(
    "desk", description="Answers at the desk.", instructions="You help.", tools=[track, refund], approve=["refund"]
)


@app.skill("label")
async def label(parcel: str) -> str:
    """A label."""
    return f"[ {parcel} ]"
