//! Where scratch files go when nobody says.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's cache directory, or the nearest directory above it that exists; the current one where there is
/// neither. A symbolic link is followed: nobody named it, so nobody can name what it points to instead.
pub fn default_directory() -> PathBuf {
    chosen(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
}

fn chosen(cache: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let cache = cache.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.map(PathBuf::from).filter(|path| path.is_absolute());
    let own = home.as_ref().map(|home| home.join(".cache"));
    let found = [cache, own, home]
        .into_iter()
        .flatten()
        .find(|path| path.is_dir())
        .unwrap_or_else(|| PathBuf::from("."));
    // Only a link: on Windows the canonical form of any path is one that other programs do not understand.
    if found.is_symlink() { found.canonicalize().unwrap_or(found) } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_comes_before_the_home_and_what_does_not_exist_is_passed_over() {
        let here = std::env::temp_dir();
        let there = Some(here.clone().into_os_string());
        let nowhere = Some(OsString::from("/nonexistent/latlab"));
        assert_eq!(chosen(there.clone(), nowhere.clone()), here);
        assert_eq!(chosen(nowhere.clone(), there.clone()), here);
        assert_eq!(chosen(nowhere.clone(), nowhere), PathBuf::from("."));
        assert_eq!(chosen(Some("relative".into()), None), PathBuf::from("."));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_cache_that_is_a_symbolic_link_is_followed() {
        let own = crate::place::tests::Own::new("linked");
        let (real, link) = (own.0.join("real"), own.0.join("link"));
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let found = chosen(Some(link.into_os_string()), None);
        assert!(!found.is_symlink());
        assert_eq!(found, real.canonicalize().expect("there"));
    }
}
