//! Who may talk to the agent: the rule as a table, and the forms of an id.

use proto::access::{self, Applicant, Denied, Grounds, Rules, Standing};
use proto::session::ChatKind;
use talaria_proto as proto;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn judged(
    rules: &Rules,
    who: (&[&str], &[&str], ChatKind, &str),
    standing: Standing,
) -> Result<Grounds, Denied> {
    let (names, roles, kind, chat) = who;
    let (names, roles) = (words(names), words(roles));
    rules.judge(Applicant { names: &names, roles: &roles, kind, chat }, standing)
}

#[test]
fn nobody_is_let_in_whom_nothing_allows() {
    let nothing = Rules::default();
    assert!(!nothing.allow_someone());
    for kind in [ChatKind::Dm, ChatKind::Group, ChatKind::Channel, ChatKind::Thread] {
        let of = |standing| judged(&nothing, (&["u"], &["r"], kind, "c"), standing);
        assert_eq!(of(Standing::Unknown), Err(Denied::Unknown));
        assert_eq!(of(Standing::Revoked), Err(Denied::Revoked));
        assert_eq!(of(Standing::Paired), Ok(Grounds::Paired));
        assert_eq!(
            judged(&nothing, (&[], &[], kind, "c"), Standing::Unknown),
            Err(Denied::Nameless)
        );
    }
}

#[test]
fn the_first_rule_that_allows_is_the_reason() {
    let full = Rules {
        allow_all: true,
        allow_all_platforms: true,
        users: words(&["u"]),
        groups: words(&["c"]),
        roles: words(&["r"]),
    };
    let of = |rules: &Rules, kind, standing| judged(rules, (&["u"], &["r"], kind, "c"), standing);
    let (dm, group) = (ChatKind::Dm, ChatKind::Group);
    assert_eq!(of(&full, group, Standing::Paired), Ok(Grounds::Group));
    assert_eq!(of(&full, dm, Standing::Paired), Ok(Grounds::Open));
    let rules = Rules { allow_all: false, ..full };
    assert_eq!(of(&rules, dm, Standing::Paired), Ok(Grounds::Role));
    let rules = Rules { roles: Vec::new(), ..rules };
    assert_eq!(of(&rules, dm, Standing::Paired), Ok(Grounds::Paired));
    assert_eq!(of(&rules, dm, Standing::Unknown), Ok(Grounds::Listed));
    let rules = Rules { users: words(&["*"]), ..rules };
    assert_eq!(of(&rules, dm, Standing::Unknown), Ok(Grounds::Listed));
    let rules = Rules { users: Vec::new(), ..rules };
    assert_eq!(of(&rules, dm, Standing::Unknown), Ok(Grounds::Open));
    let rules = Rules { allow_all_platforms: false, ..rules };
    assert_eq!(of(&rules, dm, Standing::Unknown), Err(Denied::Unknown));
    assert_eq!(of(&rules, group, Standing::Unknown), Ok(Grounds::Group));
}

#[test]
fn whoever_is_shut_out_stays_out_whatever_lists_say() {
    let rules = Rules {
        allow_all: true,
        allow_all_platforms: true,
        users: words(&["*"]),
        groups: words(&["*"]),
        roles: words(&["r"]),
    };
    for kind in [ChatKind::Dm, ChatKind::Group] {
        let of = judged(&rules, (&["u"], &["r"], kind, "c"), Standing::Revoked);
        assert_eq!(of, Err(Denied::Revoked));
    }
}

#[test]
fn a_group_lets_in_those_who_have_no_name_and_a_list_does_not() {
    let rules = Rules { groups: words(&["c"]), users: words(&["*"]), ..Rules::default() };
    let nameless = |kind, chat| judged(&rules, (&[], &[], kind, chat), Standing::Unknown);
    assert_eq!(nameless(ChatKind::Group, "c"), Ok(Grounds::Group));
    assert_eq!(nameless(ChatKind::Group, "d"), Err(Denied::Nameless));
    assert_eq!(nameless(ChatKind::Dm, "c"), Err(Denied::Nameless));
}

#[test]
fn the_forms_of_an_id_are_one_person() {
    let names =
        |platform: &str, ids: &[&str], home| access::names(platform, ids.iter().copied(), home);
    for form in ["+4915", "4915", "4915@s.whatsapp.net", "4915:7@s.whatsapp.net", " 4915 "] {
        assert_eq!(names("whatsapp", &[form], None), ["4915"], "{form}");
    }
    // A LID has digits too, and they are no telephone number.
    assert_eq!(names("whatsapp", &["4915:2@lid"], None), ["4915@lid"]);
    assert_eq!(names("whatsapp", &["4915@lid", "+49@s.whatsapp.net"], None), ["4915@lid", "49"]);
    let uuid = "A1B2C3D4-0000-1111-2222-333344445555";
    assert_eq!(names("signal", &[uuid, "+49"], None), [uuid.to_lowercase().as_str(), "+49"]);
    assert_eq!(names("matrix", &["@Ann:S.org", "@Ann:S.org", ""], None), ["@Ann:S.org"]);
    assert_eq!(names("telegram", &["Ann"], None), ["Ann"]);
}

#[test]
fn the_part_before_the_at_names_a_person_at_home_alone() {
    let names = |id: &str, home| access::names("email", [id], home);
    assert_eq!(names("Ann@Home.org", Some("home.org")), ["ann@home.org", "ann"]);
    assert_eq!(names("Ann@evil.org", Some("home.org")), ["ann@evil.org"]);
    assert_eq!(names("Ann@home.org", None), ["ann@home.org"]);
    assert_eq!(names("\"a@home.org\"@evil.org", Some("home.org")), ["\"a@home.org\"@evil.org"]);
}

#[test]
fn a_masked_id_is_twelve_digits_of_its_hash() {
    assert_eq!(access::masked("12345"), "5994471abb01");
    assert_ne!(access::masked("12345"), access::masked("12346"));
}
