"""Conformance kits for those who write policies, and builders for the views they decide from.

They need pytest and hypothesis, which come with the extra `dev`.
"""
