"""Forms of tables other than one row per answer under the usual names: results of platforms, wide tables, matrices."""
