//! What is answered.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use super::body::Body;
use super::guard::Guard;
use super::places::{Place, UnderWay};
use super::{Settings, Totals};

/// The longest body: beyond any measurement, and short of what would run for days by a slip of the hand.
const MOST_BYTES: u64 = 1 << 40;

/// What all connections share.
#[derive(Debug)]
pub(super) struct State {
    guard: Option<Guard>,
    answers_after: Duration,
    pub(super) totals: Arc<Totals>,
}

impl State {
    /// Fails when there is a secret and the system has no random numbers.
    pub(super) fn new(settings: &Settings, totals: Arc<Totals>) -> io::Result<Self> {
        Ok(Self {
            guard: settings.secret.as_deref().map(Guard::new).transpose()?,
            answers_after: settings.answers_after,
            totals,
        })
    }

    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        place: &Arc<Place>,
    ) -> Result<Response<Body>, Infallible> {
        self.totals.requests.fetch_add(1, Ordering::Relaxed);
        if request.uri().path() == "/challenge" {
            return Ok(self.challenge(request.method(), place));
        }
        if !self.admits(&request, place) {
            self.totals.refused.fetch_add(1, Ordering::Relaxed);
            let mut refusal = said(StatusCode::UNAUTHORIZED, "a shared secret is required: GET /challenge\n");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("latlab"));
            return Ok(refusal);
        }
        let Some(under_way) = place.begin() else {
            return Ok(said(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server has reached its limit of connections\n",
            ));
        };
        if !self.answers_after.is_zero() {
            tokio::time::sleep(self.answers_after).await;
        }
        Ok(self.admitted(request, under_way).await)
    }

    async fn admitted(&self, request: Request<Incoming>, under_way: UnderWay) -> Response<Body> {
        let path = request.uri().path();
        let reading = matches!(*request.method(), Method::GET | Method::HEAD);
        let response = match path {
            "/" if reading => said(
                StatusCode::OK,
                concat!("latlab ", env!("CARGO_PKG_VERSION"), ": GET /bytes/N, POST /sink\n"),
            ),
            "/sink" if request.method() == Method::POST => self.sink(request.into_body()).await,
            "/sink" => wrong_method("POST"),
            "/" => wrong_method("GET, HEAD"),
            _ => match path.strip_prefix("/bytes/") {
                Some(_) if !reading => wrong_method("GET, HEAD"),
                Some(count) => self.bytes(count, request.method()),
                None => said(StatusCode::NOT_FOUND, "not found: GET /bytes/N, POST /sink\n"),
            },
        };
        response.map(|body| body.keeping(under_way))
    }

    fn admits(&self, request: &Request<Incoming>, place: &Place) -> bool {
        let Some(guard) = &self.guard else { return true };
        let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        authorization.is_some_and(|authorization| {
            guard.admits(authorization, request.method().as_str(), target, place.address())
        })
    }

    fn challenge(&self, method: &Method, place: &Place) -> Response<Body> {
        if method != Method::GET {
            return wrong_method("GET");
        }
        match &self.guard {
            Some(guard) => said(StatusCode::OK, guard.challenge(place.address())),
            None => said(StatusCode::NOT_FOUND, "no proof is required here\n"),
        }
    }

    fn bytes(&self, count: &str, method: &Method) -> Response<Body> {
        // Not `parse` alone, which takes a sign.
        let digits = count.bytes().all(|byte| byte.is_ascii_digit());
        match count.parse::<u64>() {
            Ok(count) if digits && count <= MOST_BYTES => {
                if method == Method::GET {
                    self.totals.sent_bytes.fetch_add(count, Ordering::Relaxed);
                }
                answered(StatusCode::OK, Body::bytes(count))
            }
            _ => said(StatusCode::BAD_REQUEST, "/bytes/N: N is a number of bytes up to 2^40\n"),
        }
    }

    /// Reads the body to its end and says how long it was.
    async fn sink(&self, mut body: Incoming) -> Response<Body> {
        let mut count = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                // The connection is gone, and this answer with it.
                return said(StatusCode::BAD_REQUEST, "the body ended too early\n");
            };
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            count += bytes;
            self.totals.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        said(StatusCode::OK, format!("{count}\n"))
    }
}

fn said(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    answered(status, Body::text(text))
}

fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "not with this method\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn answered(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // Nothing between a server and a client that measures may answer in the server's place.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
