//! Random commands on two lists against plain vectors, across the borders of all their forms.

use crate::testing::TestServer;
use russet_base::Random;
use russet_protocol::Value;
use std::collections::VecDeque;

type Model = VecDeque<Vec<u8>>;

fn text(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0..4 => random.below(300).to_string().into_bytes(),
        4..8 => format!("t{}", random.below(6)).into_bytes(),
        8 => vec![b'm'; random.below(200) as usize],
        _ => vec![b'l'; random.below(3000) as usize],
    }
}

fn bulks<'a>(elements: impl IntoIterator<Item = &'a Vec<u8>>) -> Value {
    Value::Array(elements.into_iter().map(Value::bulk).collect())
}

struct Pair {
    server: TestServer,
    lists: [Model; 2],
}

const KEYS: [&[u8]; 2] = [b"one", b"two"];

impl Pair {
    fn run(&mut self, args: &[&[u8]]) -> Value {
        self.server.run(args)
    }

    fn push(&mut self, random: &mut Random, which: usize) {
        let at_front = random.below(2) == 0;
        let texts: Vec<Vec<u8>> = (0..1 + random.below(8)).map(|_| text(random)).collect();
        let name: &[u8] = if at_front { b"LPUSH" } else { b"RPUSH" };
        let mut args = vec![name, KEYS[which]];
        args.extend(texts.iter().map(Vec::as_slice));
        for text in &texts {
            match at_front {
                true => self.lists[which].push_front(text.clone()),
                false => self.lists[which].push_back(text.clone()),
            }
        }
        let len = self.lists[which].len() as i64;
        assert_eq!(self.run(&args), Value::Integer(len));
    }

    fn pop(&mut self, random: &mut Random, which: usize) {
        let count = 1 + random.below(9) as usize;
        let at_front = random.below(2) == 0;
        let name: &[u8] = if at_front { b"LPOP" } else { b"RPOP" };
        let list = &mut self.lists[which];
        let mut pop = || if at_front { list.pop_front() } else { list.pop_back() };
        let popped: Vec<_> = (0..count).map_while(|_| pop()).collect();
        let reply = self.run(&[name, KEYS[which], count.to_string().as_bytes()]);
        let expected = if popped.is_empty() { Value::NullArray } else { bulks(&popped) };
        assert_eq!(reply, expected);
    }

    fn edit(&mut self, random: &mut Random, which: usize) {
        let (text, list) = (text(random), &mut self.lists[which]);
        if list.is_empty() {
            return;
        }
        let at = random.below(list.len() as u64) as usize;
        let key = KEYS[which];
        match random.below(4) {
            0 => {
                list[at].clone_from(&text);
                self.run(&[b"LSET", key, at.to_string().as_bytes(), &text]);
            }
            1 => {
                let pivot = list[at].clone();
                let first = list.iter().position(|element| *element == pivot).unwrap();
                list.insert(first + 1, text.clone());
                self.run(&[b"LINSERT", key, b"AFTER", &pivot, &text]);
            }
            2 => {
                let wanted = list[at].clone();
                list.retain(|element| *element != wanted);
                self.run(&[b"LREM", key, b"0", &wanted]);
            }
            _ => {
                let stop = at + list.len() / 2 + 1;
                *list = list.iter().take(stop + 1).skip(at / 8).cloned().collect();
                let (start, stop) = ((at / 8).to_string(), stop.to_string());
                self.run(&[b"LTRIM", key, start.as_bytes(), stop.as_bytes()]);
            }
        }
    }

    fn carry(&mut self, random: &mut Random) {
        let count = 1 + random.below(20) as usize;
        let moved: Vec<_> = {
            let len = self.lists[0].len();
            self.lists[0].drain(..count.min(len)).collect()
        };
        let expected = if moved.is_empty() { Value::NullArray } else { bulks(&moved) };
        moved.into_iter().rev().for_each(|element| self.lists[1].push_front(element));
        let count = count.to_string();
        let amount: [&[u8]; 3] = [b"COUNT", count.as_bytes(), b"BULK"];
        let mut args: Vec<&[u8]> = vec![b"LMOVEM", KEYS[0], KEYS[1], b"LEFT", b"LEFT"];
        args.extend(amount);
        assert_eq!(self.run(&args), expected);
    }

    fn check(&mut self) {
        for (key, list) in KEYS.iter().zip(self.lists.clone()) {
            assert_eq!(self.run(&[b"LRANGE", key, b"0", b"-1"]), bulks(&list));
            assert_eq!(self.run(&[b"LLEN", key]), Value::Integer(list.len() as i64));
            let exists = i64::from(!list.is_empty());
            assert_eq!(self.run(&[b"EXISTS", key]), Value::Integer(exists));
        }
    }
}

#[test]
fn lists_are_what_vectors_are() {
    for seed in 1..5 {
        let mut random = Random::from_seed(seed);
        let mut pair = Pair { server: TestServer::new(), lists: Default::default() };
        for step in 0..3000 {
            let which = random.below(2) as usize;
            // Growing and shrinking by turns, to cross the borders both ways.
            let is_growing = step / 300 % 2 == 0;
            match random.below(10) {
                0..3 => pair.push(&mut random, which),
                3..5 if is_growing => pair.push(&mut random, which),
                3..8 if !is_growing => pair.pop(&mut random, which),
                8 => pair.carry(&mut random),
                _ => pair.edit(&mut random, which),
            }
            if step % 10 == 0 {
                pair.check();
            }
        }
    }
}
