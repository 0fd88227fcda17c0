"""Running: the compiled loop, what is saved, observed and tracked along it, who runs it, and what comes back.

Offers `solve`, `integrate` (for equations that are already bound), `Solution` and `Watcher`.
"""
