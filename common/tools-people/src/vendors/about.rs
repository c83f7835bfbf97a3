//! Checks that a vendor's record matches the query.
//!
//! Vendors match loosely, and no result is better than a wrong person. So a record that contradicts the query is rejected.
//! An e-mail address or a profile identifies one person, and a domain one company: if the record has them, they decide.
//! Otherwise names decide. A missing value never contradicts the query.

use base::names;

use super::read::{domain_of, email_of, plain_email, profile_name};
use super::{Company, CompanyFilter, CompanyQuery, Page, PeopleFilter, Person, PersonQuery, Reply};

/// Whether one domain equals the other or is a subdomain of it.
pub fn same_domain(one: &str, other: &str) -> bool {
    let below =
        |low: &str, high: &str| low.strip_suffix(high).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    below(&one, &other) || below(&other, &one)
}

/// Whether an address is at this domain or below it.
pub fn is_at(email: &str, domain: &str) -> bool {
    email.rsplit_once('@').is_some_and(|(_, host)| same_domain(host, domain))
}

/// Whether a record is about the person in the query.
pub fn is_about(person: &Person, who: &PersonQuery) -> bool {
    let decisive = [by_address(person, who), by_profile(person, who)];
    let names = who.name.as_deref().zip(name(person));
    if decisive.contains(&Some(true)) {
        // People marry and have nicknames, so related names are enough; unrelated names mean another person.
        return names.is_none_or(|(asked, known)| names::are_related(asked, &known) != Some(false));
    }
    let named = names.and_then(|(asked, known)| names::same_person(asked, &known));
    !decisive.contains(&Some(false)) && named != Some(false) && !is_elsewhere(person, who)
}

fn name(person: &Person) -> Option<String> {
    let joined = || Some(format!("{} {}", person.first_name.as_ref()?, person.last_name.as_ref()?));
    person.full_name.clone().or_else(joined)
}

fn emails(person: &Person) -> impl Iterator<Item = &String> {
    let some = [&person.email, &person.best_work_email, &person.best_personal_email];
    some.into_iter().flatten().chain(&person.altemails)
}

fn by_address(person: &Person, who: &PersonQuery) -> Option<bool> {
    let asked = plain_email(&email_of(who.email.as_deref()?)?);
    emails(person).next()?;
    Some(emails(person).any(|email| plain_email(email) == asked))
}

fn by_profile(person: &Person, who: &PersonQuery) -> Option<bool> {
    let urls = person.linkedin_url.iter().chain(person.profiles.iter().map(|(_, url)| url));
    same_profile(who.profile_url.as_deref()?, urls)
}

/// Whether the profile is among these. `None` if this cannot be known: there is no profile on the same network, or only one
/// whose URL has an id instead of a name.
fn same_profile<'a>(asked: &str, known: impl Iterator<Item = &'a String>) -> Option<bool> {
    let asked = profile_name(asked)?;
    let host = asked.split('/').next()?;
    let there = |name: &String| name.split('/').next() == Some(host);
    let known: Vec<String> = known.filter_map(|url| profile_name(url)).filter(there).collect();
    if known.contains(&asked) {
        return Some(true);
    }
    // A profile may also have a numeric or search id instead of its name, so such ids cannot be compared.
    let has_name = |name: &String| {
        let last = name.rsplit('/').next().unwrap_or_default();
        !last.bytes().all(|byte| byte.is_ascii_digit()) && !last.starts_with("acoaa")
    };
    (has_name(&asked) && known.iter().any(has_name)).then_some(false)
}

/// Whether the record has an employer and none of them is the one in the query.
fn is_elsewhere(person: &Person, who: &PersonQuery) -> bool {
    let firms = || person.experience.iter().map(|job| &job.company);
    let by_domain = who.company_domain.as_deref().and_then(|asked| {
        let sites = firms().filter_map(|firm| firm.website.as_deref().and_then(domain_of));
        let known: Vec<String> = person.company_domain.iter().cloned().chain(sites).collect();
        let is_there = known.iter().any(|domain| same_domain(domain, asked));
        // An address at another domain proves nothing: most people also have a private address.
        let has_address = emails(person).any(|email| is_at(email, asked));
        (!known.is_empty() || has_address).then_some(is_there || has_address)
    });
    let by_name = who.company.as_deref().and_then(|asked| {
        let names = person.company.iter().chain(firms().filter_map(|firm| firm.name.as_ref()));
        let judged: Vec<bool> = names.filter_map(|name| names::same_firm(asked, name)).collect();
        (!judged.is_empty()).then(|| judged.contains(&true))
    });
    [by_domain, by_name].contains(&Some(false)) && ![by_domain, by_name].contains(&Some(true))
}

/// Whether a record is about the company in the query.
pub fn is_of(company: &Company, which: &CompanyQuery) -> bool {
    let by_domain = which.domain.as_deref().and_then(|asked| at(company, asked));
    let by_profile = which.linkedin_url.as_deref().and_then(|asked| same_profile(asked, company.linkedin_url.iter()));
    let plain = |ticker: &str| ticker.rsplit(':').next().unwrap_or_default().trim().to_uppercase();
    let by_ticker = which.ticker.as_deref().zip(company.ticker.as_deref());
    let by_ticker = by_ticker.map(|(asked, known)| plain(asked) == plain(known));
    let decisive = [by_domain, by_profile, by_ticker];
    if decisive.contains(&Some(true)) {
        return true;
    }
    !decisive.contains(&Some(false)) && is_called(company, which.name.as_deref())
}

fn at(company: &Company, asked: &str) -> Option<bool> {
    let site = company.website.as_deref().and_then(domain_of);
    let known: Vec<&String> = company.domain.iter().chain(&site).collect();
    (!known.is_empty()).then(|| known.iter().any(|domain| same_domain(domain, asked)))
}

fn is_called(company: &Company, asked: Option<&str>) -> bool {
    let names = asked.zip(company.name.as_deref());
    names.and_then(|(asked, known)| names::same_firm(asked, known)) != Some(false)
}

impl<T> Page<T> {
    /// Removes the rows that contradict the query.
    fn keep(&mut self, fits: impl Fn(&T) -> bool) {
        let before = self.rows.len();
        self.rows.retain(fits);
        self.total = self.total.saturating_sub((before - self.rows.len()) as u64);
    }
}

/// Removes people who are known to work elsewhere.
pub fn keep_people(page: &mut Page<Person>, filter: &PeopleFilter) {
    let (domains, firms) = (&filter.company_domains, &filter.companies);
    page.keep(|person| {
        let at = person.company_domain.as_deref();
        let is_there = at.is_none_or(|at| domains.is_empty() || domains.iter().any(|asked| same_domain(at, asked)));
        let firm = person.company.as_deref();
        let may_be = |firm: &str| firms.iter().any(|asked| names::same_firm(asked, firm) != Some(false));
        is_there && firm.is_none_or(|firm| firms.is_empty() || may_be(firm))
    });
}

/// Removes companies whose name or domain differs from the query.
pub fn keep_companies(page: &mut Page<Company>, filter: &CompanyFilter) {
    page.keep(|company| {
        let there = filter.domain.as_deref().and_then(|asked| at(company, asked));
        there.unwrap_or_else(|| is_called(company, filter.name.as_deref()))
    });
}

/// The person's address at the employer in the query.
pub fn address_of(found: Reply<Person>, who: &PersonQuery) -> Reply<String> {
    match found {
        Reply::Found(person) if is_about(&person, who) => {
            let domain = who.company_domain.as_deref().unwrap_or_default();
            let emails = person.best_work_email.into_iter().chain(person.email).chain(person.altemails);
            let mut there = emails.filter(|email| is_at(email, domain));
            there.next().map_or(Reply::Nothing, Reply::Found)
        }
        Reply::Found(_) | Reply::Nothing => Reply::Nothing,
        Reply::Objected => Reply::Objected,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Employer, Experience};
    use super::*;

    fn text(text: &str) -> Option<String> {
        (!text.is_empty()).then(|| text.to_owned())
    }

    #[test]
    fn a_record_that_contradicts_the_query_is_rejected() {
        let past = Experience {
            company: Employer { name: text("Past Ltd"), website: text("past.example") },
            ..Experience::default()
        };
        let jane = Person {
            full_name: text("jane doe"),
            company: text("Example"),
            company_domain: text("example.com"),
            email: text("jane@example.com"),
            altemails: vec!["jane.doe@gmail.com".to_owned()],
            linkedin_url: text("https://linkedin.com/in/janedoe"),
            experience: vec![past],
            ..Person::default()
        };
        let silent = Person { title: text("CTO"), ..Person::default() };
        // E-mail, profile, name, employer's domain, employer's name.
        for (asked, is) in [
            (["jane@example.com", "", "", "", ""], true),
            (["Jane.Doe+news@gmail.com", "", "", "", ""], true),
            (["john@example.com", "", "", "", ""], false),
            (["john@example.com", "https://www.linkedin.com/in/janedoe/", "", "", ""], true),
            (["jane@example.com", "", "Jane Roe", "other.example", ""], true),
            (["jane@example.com", "", "Bob Smith", "", ""], false),
            (["", "https://de.linkedin.com/in/JaneDoe", "", "", ""], true),
            (["", "https://www.linkedin.com/in/johnroe", "", "", ""], false),
            (["", "https://www.linkedin.com/in/12345", "", "", ""], true),
            (["", "https://github.com/somebody", "", "", ""], true),
            (["", "", "Jane Q. Doe", "www.example.com", ""], true),
            (["", "", "John Doe", "example.com", ""], false),
            (["", "", "Jane Doe", "other.example", ""], false),
            (["", "", "Jane Doe", "past.example", ""], true),
            (["", "", "Jane Doe", "", "Other Ltd"], false),
            (["", "", "Jane Doe", "", "Past"], true),
            (["", "", "Jane Doe", "other.example", "Example Inc"], true),
        ] {
            let [email, profile, name, domain, company] = asked.map(text);
            let who = PersonQuery {
                email,
                profile_url: profile,
                name,
                company_domain: domain,
                company,
                ..PersonQuery::default()
            };
            assert_eq!(is_about(&jane, &who), is, "{asked:?}");
            assert!(is_about(&silent, &who), "what is not said contradicts nothing: {asked:?}");
        }

        let example = Company {
            name: text("Example Corporation"),
            domain: text("example.com"),
            linkedin_url: text("https://linkedin.com/company/example"),
            ticker: text("EXMP"),
            ..Company::default()
        };
        // Domain, name, profile, ticker.
        for (asked, is) in [
            (["shop.example.com", "", "", ""], true),
            (["notexample.com", "", "", ""], false),
            (["example.com", "Renamed", "", ""], true),
            (["", "example", "", ""], true),
            (["", "Other", "", ""], false),
            (["", "", "https://www.linkedin.com/company/example/", ""], true),
            (["", "", "https://www.linkedin.com/company/other", ""], false),
            (["", "", "https://www.linkedin.com/company/1441", ""], true),
            (["", "", "", "nasdaq:exmp"], true),
            (["", "", "", "OTHR"], false),
        ] {
            let [domain, name, linkedin_url, ticker] = asked.map(text);
            assert_eq!(is_of(&example, &CompanyQuery { domain, name, linkedin_url, ticker }), is, "{asked:?}");
        }
        assert!(is_at("a@mail.x.org", "x.org") && is_at("a@x.org", "mail.x.org") && !is_at("a@notx.org", "x.org"));

        let at = |firm: &str| Person { company: text(firm), ..Person::default() };
        let mut page = Page { rows: vec![at("Acme Inc."), at("Other"), Person::default()], total: 7 };
        keep_people(&mut page, &PeopleFilter { companies: vec!["Acme".to_owned()], ..PeopleFilter::default() });
        assert_eq!((page.rows.len(), page.total), (2, 6));
        let mut page =
            Page { rows: vec![jane.clone(), Person { company_domain: text("other.org"), ..jane }], total: 9 };
        keep_people(
            &mut page,
            &PeopleFilter { company_domains: vec!["example.com".to_owned()], ..PeopleFilter::default() },
        );
        assert_eq!((page.rows.len(), page.total), (1, 8));
    }
}
