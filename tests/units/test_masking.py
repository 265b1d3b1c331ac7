from __future__ import annotations

import shlex

import pytest

from latlab.masking import masked, masked_url

HIDDEN = (
    ("curl -u jane:pw1 https://example.org/", "curl -u 'jane:***' https://example.org/"),
    ("curl -ujane:pw1 -x proxy:8080 http://h/", "curl '-ujane:***' -x proxy:8080 http://h/"),
    (
        "curl --user jane:pw1 --proxy-user p:pw2 http://h/",
        "curl --user 'jane:***' --proxy-user 'p:***' http://h/",
    ),
    ("curl -x p:pw1@proxy:3128 http://h/", "curl -x 'p:***@proxy:3128' http://h/"),
    ("curl -H 'Authorization: Bearer pw1.x' http://h/", "curl -H 'Authorization: Bearer ***' http://h/"),
    ("curl -H 'authorization: Basic cHcx' http://h/", "curl -H 'authorization: Basic ***' http://h/"),
    ("curl -H 'X-Api-Key: pw1' http://h/", "curl -H 'X-Api-Key: ***' http://h/"),
    ("curl -H 'PRIVATE-TOKEN: pw1' http://h/", "curl -H 'PRIVATE-TOKEN: ***' http://h/"),
    ("curl -H 'Cookie: session=pw1; a=pw2' http://h/", "curl -H 'Cookie: ***' http://h/"),
    ("curl --oauth2-bearer pw1 http://h/", "curl --oauth2-bearer '***' http://h/"),
    (
        """curl -d '{"user":"jane","password":"pw1"}' http://h/""",
        """curl -d '{"user":"jane","password":"***"}' http://h/""",
    ),
    ("curl -d 'user=jane&password=pw1&x=1' http://h/", "curl -d 'user=jane&password=***&x=1' http://h/"),
    ("curl 'https://h/x?a=1&token=pw1&key=pw2#y'", "curl 'https://h/x?a=1&token=***&key=***#y'"),
    (
        "wget --http-password=pw1 --http-user=jane http://h/",
        "wget '--http-password=***' --http-user=jane http://h/",
    ),
    ("mysql -u root -ppw1 shop", "mysql -u root '-p***' shop"),
    ("/usr/bin/mysqldump --password=pw1 shop", "/usr/bin/mysqldump '--password=***' shop"),
    ("psql postgres://u:pw1@h:5432/shop", "psql 'postgres://u:***@h:5432/shop'"),
    ("psql 'host=h user=u password=pw1'", "psql 'host=h user=u password=***'"),
    ("env PGPASSWORD=pw1 psql -h h", "env 'PGPASSWORD=***' psql -h h"),
    (
        "docker login -u jane -p pw1 registry.example.org",
        "docker login -u jane -p '***' registry.example.org",
    ),
    ("docker run -e API_TOKEN=pw1 -p 80:80 web", "docker run -e 'API_TOKEN=***' -p 80:80 web"),
    ("git clone https://pw1@git.example.org/x.git", "git clone 'https://***@git.example.org/x.git'"),
    (
        "git clone https://jane:pw1@git.example.org/x.git",
        "git clone 'https://jane:***@git.example.org/x.git'",
    ),
    (
        "tool --api-key pw1 --apikey=pw2 --secret-key pw3",
        "tool --api-key '***' '--apikey=***' --secret-key '***'",
    ),
    ("tool --password pw1 --client-secret pw2", "tool --password '***' --client-secret '***'"),
    ("java -Ddb.password=pw1 -jar x.jar", "java '-Ddb.password=***' -jar x.jar"),
    ("sshpass -p pw1 ssh -p 22 h", "sshpass -p '***' ssh -p 22 h"),
    ("sudo redis-cli -a pw1 ping", "sudo redis-cli -a '***' ping"),
    ("ldapsearch -w pw1 -x", "ldapsearch -w '***' -x"),
    ("smbclient //h/s -U jane%pw1", "smbclient //h/s -U 'jane%***'"),
    ("openssl enc -aes256 -k -pass pass:pw1", "openssl enc -aes256 -k -pass '***'"),
    (
        "sh -c 'TOKEN=pw1 ./run --password pw2; mysql -ppw3 | sort -k 2'",
        "sh -c 'TOKEN=*** ./run --password ***; mysql -p*** | sort -k 2'",
    ),
    ("sh -c \"export SECRET='pw1 pw2' && ./run\"", "sh -c 'export SECRET='\"'\"'***'\"'\"' && ./run'"),
    (
        "aws configure set aws_secret_access_key wJalrXUtnFEMI7K7MDENGbPxRfiCYpw1",
        "aws configure set aws_secret_access_key '***'",
    ),
    ("tool AKIAIOSFODNN7EXAMPLE ghp_pw1pw1pw1pw1pw1pw1pw1pw1", "tool '***' '***'"),
    ("tool eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwdzEifQ.c2lnbmF0dXJl", "tool '***'"),
    ("login token 8f14e45fceea167a5a36dedd4bea2543", "login token '***'"),
)


@pytest.mark.parametrize(("given", "shown"), HIDDEN)
def test_a_secret_on_a_command_line_is_masked_and_its_option_named(given: str, shown: str) -> None:
    found = masked(shlex.split(given))
    assert found == tuple(shlex.split(shown))
    assert "pw" not in " ".join(found).replace("pwd", "")


@pytest.mark.parametrize(
    "given",
    [
        "tool --password-file F --token-bucket 5 --secret-file=F --no-password x",
        "sort -k 2 -t : file",
        "docker login --password-stdin -u jane",
        "docker run -p 80:80 alpine:3.19@sha256:0123456789abcdef0123456789abcdef",
        "mysql -p shop",
        "ssh -p 22 git@github.com",
        "git clone ssh://git@github.com/x/y.git",
        "git clone git@github.com:x/y.git",
        "mkdir -p a/b",
        "curl -u jane http://h:8080/x?a=1&b=2",
        "cp -p a b",
        "python3 tokenize.py --tokens 5 --max-tokens 100 --keyboard us",
        "gcc -DPASS_COUNT=3 -O2 pass.c",
        "make V=1 -j 2 CC=clang",
        "./words --key-column 2 book.txt",
        "sh -c 'sort -k 2 a | uniq -c > b; echo $HOME'",
        "grep -r password: src",
        "awk -F: '{print $1}' /etc/passwd",
        "echo pass the salt, secret santa",
        "tar --passthrough -cf x.tar key 2024-some-long-file-name.txt",
        "http://h/x?monkey=1&keys=2",
        "ffmpeg -pass 2 -i a.mp4",
    ],
)
def test_what_is_no_secret_stays(given: str) -> None:
    words = tuple(shlex.split(given))
    assert masked(words) == words


def test_a_url_loses_passwords_and_tokens_only() -> None:
    assert masked_url("https://h:8443/a?x=1&access_token=pw1") == "https://h:8443/a?x=1&access_token=***"
    assert masked_url("https://h/a?x=1") == "https://h/a?x=1"
