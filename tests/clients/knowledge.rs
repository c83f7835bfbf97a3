//! Every knowledge tool by the public Python SDKs, of both families of paths, where there is no internet: what can be
//! done with local peers is done, and everything else says so with a stable code and is paid back.
