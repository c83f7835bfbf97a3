//! A person without a vendor: from the caller's input, the company's own site, known pages, and guesses.

use platform::providers::dns::{DnsError, MailHosts};
use tools::ToolError;

use super::site::{self, Site};
use super::{Enquiry, Guess, Origin};
use crate::vendors::{Person, PersonQuery};

/// Free mail providers: their domains do not name an employer.
const FREE_MAIL: [&str; 24] = [
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "hotmail.com",
    "live.com",
    "msn.com",
    "yahoo.com",
    "ymail.com",
    "aol.com",
    "icloud.com",
    "me.com",
    "mac.com",
    "proton.me",
    "protonmail.com",
    "gmx.de",
    "gmx.net",
    "gmx.com",
    "web.de",
    "mail.com",
    "mail.ru",
    "yandex.ru",
    "yandex.com",
    "qq.com",
    "163.com",
];
/// Maximum number of known pages read.
const MAX_PAGES: usize = 5;

/// Everything found about a person.
pub struct Known {
    pub person: Person,
    /// Whether it contains anything that the caller did not say.
    pub learned: bool,
    pub sources: Vec<Origin>,
    pub guesses: Vec<Guess>,
    /// The error of the page search, if it failed.
    pub search: Option<ToolError>,
}

/// First and last name of a full name; nothing for a single word.
pub fn split_name(name: &str) -> (Option<String>, Option<String>) {
    let words: Vec<&str> = name.split_whitespace().collect();
    match &words[..] {
        [first, .., last] => (Some((*first).to_owned()), Some((*last).to_owned())),
        _ => (None, None),
    }
}

/// Whether the first and last words of both names are equal, ignoring case.
pub fn same_name(one: &str, other: &str) -> bool {
    let ends = |name: &str| {
        let (first, last) = split_name(&name.to_lowercase());
        first.zip(last)
    };
    ends(one).is_some_and(|ends_of_one| ends(other) == Some(ends_of_one))
}

/// Usual patterns of company addresses, the most common first. Names without ASCII spelling give none.
pub fn patterns(first: &str, last: &str, domain: &str) -> Vec<(&'static str, String)> {
    let letters =
        |name: &str| -> String { name.to_lowercase().chars().filter_map(plain_letter).flatten().copied().collect() };
    let (first, last) = (letters(first), letters(last));
    let (Some(initial), false) = (first.chars().next(), last.is_empty()) else { return Vec::new() };
    vec![
        ("first.last", format!("{first}.{last}@{domain}")),
        ("flast", format!("{initial}{last}@{domain}")),
        ("first", format!("{first}@{domain}")),
    ]
}

fn plain_letter(letter: char) -> Option<&'static [char]> {
    const ASCII: [char; 26] = [
        'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
        'w', 'x', 'y', 'z',
    ];
    Some(match letter {
        'a'..='z' => &ASCII[(letter as usize - 'a' as usize)..=(letter as usize - 'a' as usize)],
        'ä' => &['a', 'e'],
        'ö' | 'ø' | 'œ' => &['o', 'e'],
        'ü' => &['u', 'e'],
        'ß' => &['s', 's'],
        'à' | 'á' | 'â' | 'ã' | 'ą' => &['a'],
        'å' => &['a'],
        'æ' => &['a', 'e'],
        'ç' | 'ć' | 'č' => &['c'],
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => &['e'],
        'ì' | 'í' | 'î' | 'ï' => &['i'],
        'ł' => &['l'],
        'ñ' | 'ń' | 'ň' => &['n'],
        'ò' | 'ó' | 'ô' | 'õ' => &['o'],
        'ř' => &['r'],
        'ś' | 'š' => &['s'],
        'ù' | 'ú' | 'û' | 'ů' => &['u'],
        'ý' | 'ÿ' => &['y'],
        'ź' | 'ż' | 'ž' => &['z'],
        _ => return None,
    })
}

/// Whether the local part has both names, or an initial and the last name.
pub fn is_named(email: &str, first: &str, last: &str) -> bool {
    let local = email.split('@').next().unwrap_or_default();
    let shapes = patterns(first, last, "x");
    let local: String = local.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    shapes.iter().take(2).any(|(_, shape)| {
        let shape: String = shape.trim_end_matches("@x").chars().filter(char::is_ascii_alphanumeric).collect();
        local == shape
    })
}

/// The employer's domain in an address; `None` for free mail.
pub fn employer_domain(email: &str) -> Option<String> {
    let domain = email.rsplit('@').next()?;
    (!FREE_MAIL.contains(&domain)).then(|| domain.to_owned())
}

impl Enquiry {
    /// Whether a domain takes mail.
    pub(super) async fn takes_mail(&self, domain: &str) -> Result<bool, DnsError> {
        match self.toolbox.dns.mail_hosts(domain, self.deadline).await {
            Ok(MailHosts::Listed(_)) => Ok(true),
            Ok(MailHosts::Refused) | Err(DnsError::NoSuchName | DnsError::NotAName) => Ok(false),
            // Without MX records a domain's own address takes its mail (RFC 5321 §5.1).
            Err(DnsError::NoSuchRecord) => match self.toolbox.dns.addresses(domain, self.deadline).await {
                Ok(addresses) => Ok(!addresses.is_empty()),
                Err(error) if error.is_answer() => Ok(false),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Guessed addresses at a domain, with their status.
    pub(super) async fn guess_emails(&self, first: &str, last: &str, domain: &str) -> Vec<Guess> {
        let status = match self.takes_mail(domain).await {
            Ok(true) => "domain_takes_mail",
            Ok(false) => "domain_takes_no_mail",
            Err(_) => "unverified",
        };
        // A domain that takes no mail has no addresses to guess.
        if status == "domain_takes_no_mail" {
            return Vec::new();
        }
        let guesses = patterns(first, last, domain).into_iter();
        guesses.map(|(basis, value)| Guess { field: "email", value, basis, status }).collect()
    }

    /// Everything that is known of a person without a vendor.
    pub(super) async fn known(&self, who: &PersonQuery) -> Known {
        let mut person = Person {
            full_name: who.name.clone(),
            company: who.company.clone(),
            company_domain: who.company_domain.clone(),
            linkedin_url: who.profile_url.clone().filter(|url| site::is_network(url) && url.contains("linkedin.")),
            email: who.email.clone(),
            ..Person::default()
        };
        let (first, last) = who.name.as_deref().map(split_name).unwrap_or_default();
        (person.first_name, person.last_name) = (who.first_name.clone().or(first), who.last_name.clone().or(last));
        let mut sources = input_sources(&person);
        let (mut learned, mut guesses, mut search) = (false, Vec::new(), None);

        let domain = who.company_domain.clone().or_else(|| who.email.as_deref().and_then(employer_domain));
        let firm = match &domain {
            Some(domain) => {
                self.task.reporter.say(25, "reading the company's own site");
                site::read(&self.toolbox, domain, self.deadline).await
            }
            None => None,
        };
        let mut found: Vec<(Person, String, &'static str)> = Vec::new();
        if let Some(firm) = &firm {
            found.extend(firm.people().into_iter().map(|(person, url)| (person, url, "site")));
        }
        match self.people_of_known_pages(who).await {
            Ok(people) => found.extend(people),
            Err(error) => search = Some(error),
        }
        let is_meant = |candidate: &Person| {
            let named = who
                .name
                .as_deref()
                .zip(candidate.full_name.as_deref())
                .is_some_and(|(one, other)| same_name(one, other));
            let mailed = who.email.is_some() && candidate.email == who.email;
            let linked = who.profile_url.is_some()
                && candidate.profiles.iter().any(|(_, url)| {
                    crate::opt_out::Mark::parse(url) == who.profile_url.as_deref().and_then(crate::opt_out::Mark::parse)
                });
            // Names are not unique, so a person with another employer is rejected. An unknown employer is accepted.
            let elsewhere =
                domain.is_some() && candidate.company_domain.is_some() && candidate.company_domain != domain;
            mailed || linked || named && !elsewhere && (domain.is_some() || who.company.is_some())
        };
        for (candidate, url, source) in found.iter().filter(|(candidate, ..)| is_meant(candidate)) {
            learned |= fill(&mut person, candidate, source, url, &mut sources);
        }
        if let (Some(firm), None) = (&firm, &person.company) {
            self.name_of_firm(firm, &mut person, &mut sources);
        }
        if person.company_domain.is_none() && person.company.is_some() {
            person.company_domain = domain.clone();
        }
        if let (None, Some(first), Some(last), Some(domain)) =
            (&person.email, &person.first_name, &person.last_name, &domain)
        {
            guesses.extend(self.guess_emails(first, last, domain).await);
        }
        if let (None, Some(email)) = (&person.full_name, &who.email) {
            guesses.extend(name_in(email));
        }
        if !who.phones {
            (person.phone, person.fullphone) = (None, Vec::new());
        }
        Known { person, learned, sources, guesses, search }
    }

    fn name_of_firm(&self, firm: &Site, person: &mut Person, sources: &mut Vec<Origin>) {
        let name =
            firm.first(|facts| facts.of_type(&site::ORGANIZATION).find_map(|object| site::word(&object["name"])));
        if let Some((name, url)) = name {
            person.company = Some(name);
            sources.push(Origin { field: "company", source: "site", url: Some(url) });
        }
    }

    /// People named on known pages.
    async fn people_of_known_pages(&self, who: &PersonQuery) -> Result<Vec<(Person, String, &'static str)>, ToolError> {
        let company = who.company.as_ref().or(who.company_domain.as_ref());
        let words: Vec<&str> =
            [who.name.as_ref(), who.email.as_ref(), company].into_iter().flatten().map(String::as_str).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for hit in self.pages(words.join(" "), MAX_PAGES).await? {
            if let Some((url, facts)) = site::fetch(&self.toolbox, &hit.url, self.deadline).await {
                found.extend(site::people(&facts).into_iter().map(|person| (person, url.to_string(), "index")));
            }
        }
        Ok(found)
    }
}

fn input_sources(person: &Person) -> Vec<Origin> {
    let given = [
        ("full_name", person.full_name.is_some()),
        ("company", person.company.is_some()),
        ("company_domain", person.company_domain.is_some()),
        ("linkedin_url", person.linkedin_url.is_some()),
        ("email", person.email.is_some()),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given);
    given.map(|(field, _)| Origin { field, source: "input", url: None }).collect()
}

/// Copies values that are missing; returns whether there were any.
fn fill(person: &mut Person, from: &Person, source: &'static str, url: &str, sources: &mut Vec<Origin>) -> bool {
    let mut learned = false;
    let mut take = |field: &'static str, to: &mut Option<String>, value: &Option<String>| {
        if to.is_none() && value.is_some() {
            to.clone_from(value);
            sources.push(Origin { field, source, url: Some(url.to_owned()) });
            learned = true;
        }
    };
    take("full_name", &mut person.full_name, &from.full_name);
    take("title", &mut person.title, &from.title);
    take("company", &mut person.company, &from.company);
    take("company_domain", &mut person.company_domain, &from.company_domain);
    take("linkedin_url", &mut person.linkedin_url, &from.linkedin_url);
    take("location", &mut person.location, &from.location);
    take("email", &mut person.email, &from.email);
    take("phone", &mut person.phone, &from.phone);
    take("summary", &mut person.summary, &from.summary);
    // Parts of a known name are not new information.
    person.first_name = person.first_name.take().or_else(|| from.first_name.clone());
    person.last_name = person.last_name.take().or_else(|| from.last_name.clone());
    person.best_work_email = person.best_work_email.take().or_else(|| from.best_work_email.clone());
    if person.fullphone.is_empty() {
        person.fullphone.clone_from(&from.fullphone);
    }
    for profile in &from.profiles {
        if !person.profiles.contains(profile) {
            person.profiles.push(profile.clone());
        }
    }
    learned
}

/// The name that an address suggests: two words with a dot between them.
fn name_in(email: &str) -> Option<Guess> {
    let local = email.split('@').next()?;
    let (first, last) = local.split_once('.')?;
    let fits = [first, last].iter().all(|part| part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    fits.then(|| Guess {
        field: "full_name",
        value: format!("{} {}", upper(first), upper(last)),
        basis: "address",
        status: "unverified",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_and_address_patterns_are_made() {
        assert_eq!(patterns("Jörg", "Müller-Lüdenscheidt", "x.de")[0].1, "joerg.muellerluedenscheidt@x.de");
        assert!(patterns("李", "明", "x.cn").is_empty());
        assert!(
            same_name("Jane Q. Doe", "jane doe") && !same_name("Jane Doe", "John Doe") && !same_name("Jane", "Jane")
        );
        assert!(
            is_named("j.doe@x.org", "Jane", "Doe") && is_named("Jane.Doe@x.org".to_lowercase().as_str(), "Jane", "Doe")
        );
        assert!(!is_named("jane@x.org", "Jane", "Doe") && !is_named("sales@x.org", "Jane", "Doe"));
        assert_eq!(name_in("jane.doe@x.org").unwrap().value, "Jane Doe");
        assert!(name_in("info@x.org").is_none() && name_in("a.b@x.org").is_none());
        assert_eq!(employer_domain("a@gmail.com"), None);
    }
}
