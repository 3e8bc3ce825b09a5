//! Where a receiver may be (S8).
//!
//! The addresses a name resolves to are checked in the resolver that the connection itself uses:
//! there is no second look-up between the check and the connection in which a name could move.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Why an address is not connected to. It does not repeat the address: what a name inside resolves
/// to is nothing for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Loopback or private.
    #[error(
        "the receiver's address is private or loopback: expected a public one, or `allow_private = true` for this receiver"
    )]
    Private,
    /// Never a receiver: link-local, multicast, unspecified, reserved.
    #[error(
        "the receiver's address is link-local, multicast or reserved, which is never connected to"
    )]
    Reserved,
    /// No address at all.
    #[error("the receiver's name has no address")]
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Public,
    Private,
    Reserved,
}

/// Whether an address may be connected to.
pub(crate) fn check(address: IpAddr, allow_private: bool) -> Result<(), AddressError> {
    match range(address) {
        Range::Public => Ok(()),
        Range::Private if allow_private => Ok(()),
        Range::Private => Err(AddressError::Private),
        Range::Reserved => Err(AddressError::Reserved),
    }
}

fn range(address: IpAddr) -> Range {
    match address {
        IpAddr::V4(v4) => range_v4(v4),
        IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| range_v6(v6), range_v4),
    }
}

fn range_v4(address: Ipv4Addr) -> Range {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (10 | 127, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Range::Private,
        // This network, link-local (where clouds keep their metadata), protocol assignments,
        // documentation, the old 6to4 relays, benchmarks, multicast and above.
        (0 | 224..=255, _, _)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => Range::Reserved,
        _ => Range::Public,
    }
}

fn range_v6(address: Ipv6Addr) -> Range {
    let [a, b, ..] = address.segments();
    match (a, b) {
        _ if address.is_loopback() => Range::Private,
        (0xfc00..=0xfdff, _) => Range::Private,
        // 2000::/3 is what is given out; within it Teredo, ORCHID and the like, and documentation.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => Range::Reserved,
        (0x2000..=0x3fff, _) => Range::Public,
        _ => Range::Reserved,
    }
}

/// The IPv4 address that an IPv6 one leads to: mapped, compatible, NAT64 and 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let at = |i: usize| Ipv4Addr::new(octets[i], octets[i + 1], octets[i + 2], octets[i + 3]);
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(at(12)),
        [0x2002, ..] => Some(at(2)),
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => Some(at(12)),
        _ => None,
    }
}

/// Looks names up and hands on only addresses that may be connected to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedResolver {
    pub(crate) allow_private: bool,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = only_allowed(found, allow_private)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Looks a name up, or reads an address, and gives only addresses that may be connected to.
pub(crate) async fn resolve(
    host: &str,
    port: u16,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, AddressError> {
    let found = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| AddressError::None)?;
    only_allowed(found, allow_private)
}

fn only_allowed(
    found: impl Iterator<Item = SocketAddr>,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, AddressError> {
    let mut refused = AddressError::None;
    let mut allowed = Vec::new();
    for address in found {
        match check(address.ip(), allow_private) {
            Ok(()) => allowed.push(address),
            Err(error) => refused = error,
        }
    }
    if allowed.is_empty() {
        Err(refused)
    } else {
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s08_only_public_addresses_are_connected_to_unless_private_ones_are_allowed() {
        let table = [
            ("93.184.216.34", Ok(()), Ok(())),
            ("2606:2800:220:1::1", Ok(()), Ok(())),
            ("127.0.0.1", Err(AddressError::Private), Ok(())),
            ("10.1.2.3", Err(AddressError::Private), Ok(())),
            ("172.31.255.255", Err(AddressError::Private), Ok(())),
            ("192.168.1.1", Err(AddressError::Private), Ok(())),
            ("100.64.0.1", Err(AddressError::Private), Ok(())),
            ("::1", Err(AddressError::Private), Ok(())),
            ("fd00::1", Err(AddressError::Private), Ok(())),
            ("::ffff:127.0.0.1", Err(AddressError::Private), Ok(())),
            ("::ffff:10.0.0.1", Err(AddressError::Private), Ok(())),
            ("64:ff9b::7f00:1", Err(AddressError::Private), Ok(())),
            ("2002:7f00:1::", Err(AddressError::Private), Ok(())),
            (
                "169.254.169.254",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "::ffff:169.254.169.254",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "fe80::1",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "0.0.0.0",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "::",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "224.0.0.1",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "255.255.255.255",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "ff02::1",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
            (
                "2001:db8::1",
                Err(AddressError::Reserved),
                Err(AddressError::Reserved),
            ),
        ];
        for (text, strict, lenient) in table {
            let address = text.parse().unwrap();
            assert_eq!(check(address, false), strict, "{text}");
            assert_eq!(check(address, true), lenient, "{text}, private allowed");
        }
    }

    #[test]
    fn s08_of_a_name_with_several_addresses_only_the_allowed_are_used() {
        let addresses = ["10.0.0.1:0", "93.184.216.34:0"].map(|a| a.parse().unwrap());
        let allowed = only_allowed(addresses.into_iter(), false).unwrap();
        assert_eq!(allowed, [addresses[1]]);
        assert_eq!(
            only_allowed([addresses[0]].into_iter(), false),
            Err(AddressError::Private)
        );
        assert_eq!(
            only_allowed(std::iter::empty(), true),
            Err(AddressError::None)
        );
    }
}
