//! Many threads, each of which frees what others have made.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

/// Over-aligned, as what stands on a cache line of its own.
#[repr(align(64))]
struct Line([u8; 64]);

fn text(maker: usize, number: usize) -> String {
    format!("{maker}:{number}:").repeat(1 + number % 97)
}

#[test]
fn what_threads_send_each_other_arrives_whole() {
    const MAKERS: usize = 4;
    const EACH: usize = 20_000;
    let (send, receive) = mpsc::sync_channel::<(usize, usize, String, Box<Line>)>(256);
    let makers: Vec<_> = (0..MAKERS)
        .map(|maker| {
            let send = send.clone();
            thread::spawn(move || {
                for number in 0..EACH {
                    let line = Box::new(Line([maker as u8; 64]));
                    send.send((maker, number, text(maker, number), line))
                        .expect("it listens");
                }
            })
        })
        .collect();
    drop(send);
    let mut kept = BTreeMap::new();
    for (maker, number, said, line) in receive {
        assert_eq!(said, text(maker, number));
        assert_eq!(&*line as *const Line as usize % 64, 0);
        assert!(line.0.iter().all(|&byte| byte == maker as u8));
        if number % 16 == 0 {
            kept.insert((maker, number), said);
        }
    }
    makers
        .into_iter()
        .for_each(|maker| maker.join().expect("a maker"));
    assert_eq!(kept.len(), MAKERS * EACH.div_ceil(16));
    assert!(kept
        .iter()
        .all(|((maker, number), said)| *said == text(*maker, *number)));
}

#[test]
fn threads_that_come_and_go_leave_nothing_behind() {
    let round = || {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn(|| {
                    (0..2_000)
                        .map(|number| vec![1_u8; number % 1_500])
                        .map(|v| v.len())
                        .sum::<usize>()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|each| each.join().expect("a thread"))
            .sum::<usize>()
    };
    let sum = round();
    let before = freestone::statistics();
    for _ in 0..50 {
        assert_eq!(round(), sum);
    }
    let after = freestone::statistics();
    assert!(
        after.slabs <= before.slabs + (4 << 20),
        "slabs grew from {} to {}",
        before.slabs,
        after.slabs
    );
    assert!(freestone::purge() <= after.retained + after.slabs);
}
