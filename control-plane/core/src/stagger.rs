//! What each route needs now and then, and not all of them in the same tick.

use hedgerow_protocol::ids::RouteKey;

/// The longest time between two turns, in ticks.
const TICKS: u64 = 60;

/// By how many ticks a route's turns are later than others', 0 to 59: from its name, so that every
/// run has the same.
pub(crate) fn stagger(route: &RouteKey) -> u64 {
    let names = [route.dependency.as_str(), route.operation.as_str()];
    let bytes = names.iter().flat_map(|name| name.bytes());
    bytes.fold(0, |sum, byte| (sum * 31 + u64::from(byte)) % TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_a_thousand_routes_are_spread_over_the_ticks() {
        let mut turns = [0; TICKS as usize];
        for number in 0..1_000 {
            let name = format!("team-{}/service-{number}", number % 50);
            turns[stagger(&RouteKey::new(&name, "get").unwrap()) as usize] += 1;
        }
        let mean = 1_000 / TICKS as usize;
        assert!(turns.iter().all(|it| *it <= 2 * mean), "{turns:?}");
        let odd: usize = turns.iter().skip(1).step_by(2).sum();
        assert!((400..=600).contains(&odd), "{odd} of 1000 in odd ticks");
    }
}
