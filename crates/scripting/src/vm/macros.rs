//! Instructions that come in several forms, as parts of the loop of plain instructions: each may
//! end it.

/// An operation on two numbers, or on texts that are numbers; else a metamethod is entered.
macro_rules! arith {
    ($s:ident, $at:expr, $r:ident, $a:expr, $event:ident, $b:expr, $right:expr, $do:expr) => {{
        let compute: fn(f64, f64) -> f64 = $do;
        if let (Value::Number(left), Value::Number(right)) = (&$r[$b as usize], &$right) {
            $r[$a as usize] = Value::Number(compute(*left, *right));
        } else if let Some(number) = compute_text(&$s.heap, (&$r[$b as usize], &$right), compute) {
            $r[$a as usize] = Value::Number(number);
        } else {
            let (pc, base, scratch) = ($at.0, $at.1, $at.2.registers());
            $r[scratch.wrapping_add(2) as usize] = $right;
            place_handler(&$s.heap, $s.events[Event::$event as usize], $r, (scratch, $b));
            let to = (base + $a as usize, 3, ONE_RESULT);
            break enter_placed($s, pc, base + scratch as usize, to);
        }
    }};
}

/// A write that is not plain: to `__newindex`, or to the slow way.
macro_rules! write_through {
    ($s:ident, $at:expr, $r:ident, $a:expr, $key:expr, $value:expr) => {{
        let (pc, base, scratch) = ($at.0, $at.1, $at.2.registers());
        let name = $s.events[Event::NewIndex as usize];
        let Some(handler) = write_handler(&$s.heap, name, &$r[$a as usize], &$key) else {
            break Stop::Slow;
        };
        $r[scratch as usize] = *handler;
        $r[scratch.wrapping_add(1) as usize] = $r[$a as usize];
        $r[scratch.wrapping_add(2) as usize] = $key;
        $r[scratch.wrapping_add(3) as usize] = $value;
        break enter_placed($s, pc, base + scratch as usize, (base, 4, NO_RESULT));
    }};
}

/// A comparison with a constant number that leads to a jump.
macro_rules! compare {
    ($pc:ident, $left:expr, $right:expr, $wanted:expr, $to:expr, $compare:expr) => {{
        let (Value::Number(left), Value::Number(right)) = ($left, $right) else {
            break Stop::Slow;
        };
        let compare: fn(f64, f64) -> bool = $compare;
        if compare(left, right) == $wanted {
            $pc = $to as usize;
        }
    }};
}

/// Enters a Lua function; see [`enter_plain`](super::frames::enter_plain).
macro_rules! enter {
    ($s:ident, $entry:expr) => {{
        let callees = Callees { heap: &$s.heap, protos: &$s.protos, top: $s.current.top };
        enter_plain(&mut $s.current.frames, &mut $s.current.stack, callees, $entry)
    }};
}

/// Returns values of the running function to the frame below it, or from the machine.
macro_rules! leave {
    ($s:ident, $from:expr, $count:expr) => {
        match $s.current.leave_plain($from, $count) {
            Left::Entry => return Ok(()),
            Left::Caller => {}
            Left::Event => $s.depth -= 1,
        }
    };
}

pub(super) use {arith, compare, enter, leave, write_through};
