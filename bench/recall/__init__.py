"""How much of the evidence a search finds: sets of memories with questions, the floors to beat, and the measures."""
