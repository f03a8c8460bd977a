"""The definitions that the analyzer's premises were read off, clause by clause: see premises.py.

Triggers and layout aside, each clause is as it stands in the file. Before it: the premises of
`PREMISES` in analyzer/contracts.py that would not follow without it.
"""

PLAN = "engine-rs/src/scheduler/plan.rs"
CONTRACT = "verus-proofs/src/trusted/kernel_contract.rs"
DEPLOYMENT = "verus-proofs/src/trusted/deployment.rs"

SLOTS, SEATS, PAST = ("slots_distinct",), ("seats_distinct",), ("past_equal",)
CONTIGUOUS, ONE_SEAT, DISJOINT = ("tiles_contiguous",), ("tiles_one_seat",), ("tiles_disjoint",)
COVER = ("tables_cover",)
TILES = (*CONTIGUOUS, *ONE_SEAT, *DISJOINT)

CLAUSES: dict[tuple[str, str], list[tuple[tuple[str, ...], str]]] = {
    (PLAN, "Scheduler::plan_wf"): [
        (CONTIGUOUS, "self.arrays_ok(p)"),
        ((*SEATS, *TILES), "self.sequences_ok(p)"),
        (SEATS, "self.wanted_ok(p)"),
        (SLOTS, "self.writes_ok(p)"),
    ],
    (PLAN, "Scheduler::arrays_ok"): [
        ((), "let rows = p.rows@;"),
        ((), "rows.len() <= u32::MAX"),
        ((), "p.token_ids@.len() == rows.len()"),
        (CONTIGUOUS, "p.positions@.len() == rows.len()"),
        (SLOTS, "p.slots@.len() == self.groups@.len()"),
        ((), "forall|r: int| 0 <= r < rows.len() ==> self.row_ok(rows[r])"),
        (CONTIGUOUS, "forall|r: int| 0 <= r < rows.len() ==> p.positions@[r] == rows[r].pos"),
        (
            (),
            """forall|r: int| 0 <= r < rows.len() ==> p.token_ids@[r] == token_at(
                self.seqs@[rows[r].seq as int], rows[r].pos)""",
        ),
        (
            SLOTS,
            """forall|g: int| 0 <= g < self.groups@.len()
                ==> self.slots_ok(g, (p.slots@[g])@, rows)""",
        ),
    ],
    (PLAN, "Scheduler::slots_ok"): [
        (SLOTS, "slots.len() == rows.len()"),
        (SLOTS, "forall|r: int| 0 <= r < rows.len() ==> slots[r] == self.row_slot(g, rows[r])"),
    ],
    (PLAN, "Scheduler::belongs"): [
        (ONE_SEAT, "p.rows@[r].seat == p.seats@[k]"),
        (CONTIGUOUS, "p.rows@[r].pos == p.seq_lens@[k] - (p.query_start@[k + 1] - r)"),
        (
            (),
            """p.seq_ids@[k] == spec_seq_id(
                p.rows@[r].seq, self.seqs@[p.rows@[r].seq as int].generation)""",
        ),
    ],
    (PLAN, "Scheduler::sequences_ok"): [
        ((), "let n = p.seats@.len() as int;"),
        (TILES, "p.query_start@.len() == n + 1"),
        (DISJOINT, "p.query_start@[0] == 0"),
        (DISJOINT, "p.query_start@[n] == p.rows@.len()"),
        (CONTIGUOUS, "p.seq_lens@.len() == n"),
        ((), "p.seq_ids@.len() == n"),
        (DISJOINT, "forall|k: int| 0 <= k < n ==> p.query_start@[k] < p.query_start@[k + 1]"),
        (
            (*CONTIGUOUS, *ONE_SEAT),
            """forall|k: int, r: int| 0 <= k < n && p.query_start@[k] <= r < p.query_start@[k + 1]
                ==> self.belongs(p, k, r)""",
        ),
        (SEATS, "forall|j: int, k: int| 0 <= j < k < n ==> p.seats@[j] != p.seats@[k]"),
    ],
    (PLAN, "Scheduler::wanted_ok"): [
        ((), "self.logits_ok(p)"),
        (
            SEATS,
            """forall|a: int| 0 <= a < p.sample_seqs@.len()
                ==> (p.sample_seqs@[a]) < p.seats@.len()""",
        ),
        (
            SEATS,
            """forall|a: int, b: int| 0 <= a < b < p.sample_seqs@.len()
                ==> p.sample_seqs@[a] < p.sample_seqs@[b]""",
        ),
    ],
    (PLAN, "Scheduler::writes_ok"): [
        (
            SLOTS,
            """forall|g: int, r: int| 0 <= g < self.groups@.len() && 0 <= r < p.rows@.len()
                ==> 0 <= self.row_slot(g, p.rows@[r])
                    < self.groups@[g].num_blocks() * self.config.block_size""",
        ),
        (
            SLOTS,
            """forall|g: int, r: int, q: int|
                0 <= g < self.groups@.len() && 0 <= r < q < p.rows@.len()
                ==> self.row_slot(g, p.rows@[r]) != self.row_slot(g, p.rows@[q])""",
        ),
        (
            (),
            """forall|g: int, r: int, i: int, pos: int|
                0 <= g < self.groups@.len() && 0 <= r < p.rows@.len()
                && 0 <= i < self.seqs@.len() && self.seqs@[i].phase is Running
                && self.kept(g, i) <= pos < self.seqs@[i].computed
                ==> self.row_slot(g, p.rows@[r]) != self.past(g, i, pos)""",
        ),
    ],
    (CONTRACT, "place"): [((*SLOTS, *PAST), "shape.slot(g, plan[c].tables[g], p)")],
    (CONTRACT, "is_row"): [
        ((*SLOTS, *PAST), "0 <= c < plan.len() && plan[c].first <= p < plan[c].end()"),
    ],
    (DEPLOYMENT, "first_seen"): [
        ((*SLOTS, *PAST), "if 0 < window <= p { p - window + 1 } else { 0 }"),
    ],
    (CONTRACT, "is_read"): [
        (
            (*SLOTS, *PAST),
            """0 <= c < plan.len()
                && first_seen(shape.windows[g], plan[c].first as int) <= p < plan[c].end()""",
        ),
    ],
    (CONTRACT, "plan_wf"): [
        (COVER, "shape.block_size > 0"),
        (
            COVER,
            """forall|c: int, g: int| 0 <= c < plan.len() && 0 <= g < shape.groups()
                ==> shape.covers(g, plan[c].tables[g], plan[c].end())""",
        ),
        (
            (*SLOTS, *PAST),
            """forall|c: int, p: int, d: int, q: int, g: int|
                is_row(plan, c, p) && is_read(shape, plan, d, q, g) && 0 <= g < shape.groups()
                && (c, p) != (d, q) ==> place(shape, plan, c, p, g) != place(shape, plan, d, q, g)
            """,
        ),
    ],
    (CONTRACT, "Execution::rows_computed"): [
        ((), "let plan = self.plan;"),
        (
            PAST,
            """forall|c: int, p: int, g: int| is_row(plan, c, p) && 0 <= g < self.shape.groups()
                ==> (self.after)(place(self.shape, self.plan, c, p, g)) == self.row(c, p).0[g]""",
        ),
        (
            (),
            """forall|c: int| 0 <= c < plan.len()
                ==> self.logits[c].len() == plan[c].tokens.len()""",
        ),
        (
            (),
            """forall|c: int, p: int| is_row(plan, c, p) && p >= plan[c].logits_from
                ==> self.logits[c][p - plan[c].first] == self.row(c, p).1""",
        ),
        (
            PAST,
            """forall|s: Slot| (forall|c: int, p: int| is_row(plan, c, p)
                ==> place(self.shape, plan, c, p, s.group) != s)
                ==> (self.after)(s) == (self.before)(s)""",
        ),
    ],
    (DEPLOYMENT, "Shape::slot"): [
        (
            (*SLOTS, *PAST),
            """let size = self.block_size as int;
                Slot { group, block: table[position / size], offset: position % size }""",
        ),
    ],
    (DEPLOYMENT, "Shape::covers"): [
        (COVER, "end <= table.len() * self.block_size"),
        (COVER, "forall|i: int| 0 <= i < table.len() ==> 0 <= table[i] < self.num_blocks[group]"),
    ],
}
