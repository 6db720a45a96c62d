"""Fused labels against known ones."""
