"""Market data: reading and generating Databento DBN, and the chunk of rows that stays on the device."""
