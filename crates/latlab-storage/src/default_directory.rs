//! Where scratch files go when nobody says.

use std::ffi::OsString;
use std::path::PathBuf;

/// The user's cache directory, or the nearest directory above it that exists; the current one where there is neither.
#[must_use]
pub fn default_directory() -> PathBuf {
    chosen(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
}

fn chosen(cache: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let cache = cache.map(PathBuf::from).filter(|path| path.is_absolute());
    let home = home.map(PathBuf::from).filter(|path| path.is_absolute());
    let own = home.as_ref().map(|home| home.join(".cache"));
    [cache, own, home]
        .into_iter()
        .flatten()
        .find(|path| path.is_dir())
        .unwrap_or_else(|| PathBuf::from("."))
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
}
