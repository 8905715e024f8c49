"""The LangGraph wiring: nodes and edges, routing, and the one door through which a run is made."""
