"""`pyvosti check`: whether an engine gives a request the same bits in any company.

Each cell of the matrix (`cells`) is one variation of how requests are run, as data (`scenario`).
An engine (`engines`) runs it; the battery compares every row of logits with the row of the same
request alone, bit for bit (`battery`, `observation`), says what is known of a difference
(`explain`), and shows that it can see one: planted faults must be caught (`faults`, `controls`).
"""
