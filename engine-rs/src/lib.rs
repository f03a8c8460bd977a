use vstd::prelude::*;

verus! {
}
